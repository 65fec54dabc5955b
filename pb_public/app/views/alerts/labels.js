// Texts of alert rows: cause, value, age and owner.
import { clock, humanize } from "../../ui/format.js";
import { displayed, inUnits, unitOf } from "../../ui/units.js";
import { beyond, kindNames, readingText, values, vitals } from "../../ui/vitals.js";
import { zone } from "../../ui/time.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Alert"]} Alert */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["AlertGroup"]} Group */

/** Display names of types with an unreadable code. @type {Record<string, string>} */
const names = {
  pulse: "Pulse", no_reading_24h: "No reading for a day", missed_reading: "Missed readings", hub_offline: "Hub offline",
    device_battery: "Battery low",
  stale_reading: "Repeated identical readings", implausible_reading: "Implausible reading, held",
    device_clock: "Device clock in doubt", early_warning: "Early warning score",
};
/** @param {string} type */
export const typeName = (type) => kindNames[type] ?? names[type] ?? humanize(type);

/**
 * The cause of an alert in one line: the bound that was met, if there is one.
 * @param {Group | {type: string, latest: Alert | null}} group
 */
export function causeOf({ type, latest }) {
  if (!latest) {
    return `${typeName(type)}: the latest alert cannot be read`;
  }
  if (type === "implausible_reading") { // also when it states the limit that its value would have met
    return typeName(type);
  }
  const value = values.find(({ field, name }) => latest.parameter === field || latest.parameter === name.toLowerCase()
    || field.startsWith(`${latest.parameter}_`));
  if (value && !value.changes && latest.value !== null && latest.threshold !== null) {
    return `${value.title ?? value.name} at or ${sideOf(latest)} ${displayed(latest.threshold, value.unit)}`;
  }
  return type in kindNames || type === "pulse" || type === "early_warning" ? inUnits(latest.message) || typeName(type) : typeName(type);
}

/** The side of the limit on which a value lies; for a value equal to the limit the message decides. @param {Alert} alert */
function sideOf({ value, threshold, message }) {
  const side = message?.match(new RegExp(`at or (above|below) the \\w+ limit ${threshold}(?!\\.?\\d)`));
  return side?.[1] ?? (Number(value) >= Number(threshold) ? "above" : "below");
}

/**
 * The values of a reading that is not stored, in the order of the kinds, however they arrived: systolic before diastolic.
 * @param {Record<string, unknown>} reported
 * @returns {{value: string, unit: string, held: true} | null}
 */
function heldValue(reported) {
  const known = values.filter(({ field }) => typeof reported[field] === "number");
  const main = known.filter(({ group }) => group === known[0]?.group);
  if (main.length > 0) {
    return { value: main.map(({ field, unit }) => displayed(reported[field], unit)).join("/"), unit: unitOf(main[0].unit), held: true };
  }
  const other = Object.values(reported).find((value) => typeof value === "number");
  return other === undefined ? null : { value: String(other), unit: "", held: true };
}

/**
 * The main value of an alert and its unit; null where nothing was measured.
 * @param {Alert | null} alert
 * @returns {{value: string, unit: string, held?: boolean} | null}
 */
export function valueOf(alert) {
  if (alert?.type === "early_warning") {
    return { value: String(alert.value ?? "–"), unit: "points" };
  }
  const read = /** @type {any} */ (alert?.reading ?? null);
  if (!alert || (!read && alert.type !== "implausible_reading")) {
    return null;
  }
  if (!read) {
    return heldValue(/** @type {any} */ (alert.latest_values ?? alert.reported_values ?? {}));
  }
  if (alert.type === "pulse" && read.pulse !== null && read.pulse !== undefined) {
    return { value: String(read.pulse), unit: "bpm" };
  }
  const kind = vitals[read.observation_type];
  if (!kind) {
    return null;
  }
  const [main] = kind.values;
  return read.observation_type === "blood_pressure" ? { value: `${read.systolic}/${read.diastolic}`, unit: main.unit }
    : { value: `${beyond[read.comparator] ?? ""}${displayed(read[main.field], main.unit) ?? "–"}`, unit: unitOf(main.unit) };
}

/**
 * The parts of an early warning score: name, value with its unit, points.
 * @param {Alert} alert @returns {{name: string, value: string, points: number}[]}
 */
export function scoreParts(alert) {
  const reported = /** @type {any} */ (alert.type === "early_warning" ? alert.reported_values ?? {} : {});
  return values.filter(({ field }) => typeof reported[field] === "number").map(({ field, name, unit }) => ({
    name, value: `${displayed(reported[field], unit)} ${unitOf(unit)}`, points: reported.points?.[field] ?? 0,
  }));
}

/** The measurement time of an alert's reading. @param {Alert} alert */
export const measuredAt = (alert) => /** @type {string} */ (/** @type {any} */ (alert.reading)?.measured_at ?? alert.created_at);

const minute = 60_000;
/** "4 min", "3 h", "2 d": a duration. @param {number} milliseconds */
export function durationText(milliseconds) {
  const minutes = Math.max(0, Math.round(milliseconds / minute));
  if (minutes < 1) {
    return "now";
  }
  return minutes < 60 ? `${minutes} min` : minutes < 2880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} d`;
}

const dayOf = (/** @type {number} */ at) => new Intl.DateTimeFormat("en-CA", { timeZone: zone() }).format(at);
/** "06:10", "yest. 21:02", "Thu", "3 Nov": a past time in short form. @param {string} at */
export function since(at) {
  const moment = Date.parse(at);
  const today = dayOf(Date.now());
  if (dayOf(moment) === today) {
    return clock(at);
  }
  if (dayOf(moment + 86_400_000) === today) {
    return `yest. ${clock(at)}`;
  }
  const near = Date.now() - moment < 6 * 86_400_000;
  return new Intl.DateTimeFormat(undefined, near ? { weekday: "short", timeZone: zone() }
    : { day: "numeric", month: "short", timeZone: zone() }).format(moment);
}

/** "DO": the initials of a name. @param {string} name */
export const initials = (name) => name.split(/\s+/).filter(Boolean).map((part) => part[0]).slice(0, 2).join("").toUpperCase();
