// Texts of triage rows: value, age, reasons, and assignee.
import { me } from "../../session.js";
import { ago, clock, dateTime, humanize } from "../../ui/format.js";
import { displayed, displayedChange, inUnits, unitOf } from "../../ui/units.js";
import { beyond, values } from "../../ui/vitals.js";
import { holdText } from "../patient/hold.js";

/** @typedef {import("./order.js").Row} Row */
/** @typedef {NonNullable<Row["concern"]>} Concern */

/** Shape and word of a state, so that color is never the only sign. @type {Record<string, [string, string]>} */
export const stateLabels = {
  critical: ["▲", "Critical"], warning: ["◆", "Warning"], unsure: ["?", "Not confirmed"], in_range: ["●", "In range"],
    no_bounds: ["–", "No limits"], no_data: ["○", "No data"],
};
/** The levels of the score. @type {Record<string, [string, string]>} */
export const levelLabels = { critical: ["▲", "Critical"], warning: ["◆", "Warning"], normal: ["●", "Normal"], no_data: ["○", "No data"] };

const short = { spo2: "SpO₂", glucose_mg_dl: "Glucose", pulse: "Pulse", temperature_c: "Temp." };
const round = (/** @type {number} */ n) => String(Math.round(n * 10) / 10);

/** The time span of a change. @param {Concern} c */
const span = (c) => (c.rule?.endsWith("_daily_change") ? "in a day" : c.rule?.endsWith("_over_target") ? "over target"
  : c.reasons.map(({ text }) => text.match(/within (\d+ days)/)?.[1]).filter(Boolean).map((days) => `in ${days}`)[0] ?? "");

/** The value and its unit in short form; latest are the row's latest vitals, which state whether a meter showed HI or LO.
 *  @param {Concern | undefined} c @param {Record<string, any>} [latest] @returns {{text: string, unit: string}} */
export function valueOf(c, latest = {}) {
  if (!c || c.type === null) {
    return { text: "No reading", unit: "" };
  }
  if (c.change !== null) {
    return { text: `${c.change > 0 ? "+" : "−"}${round(Math.abs(displayedChange(c.change, c.unit ?? "")))} ${unitOf(c.unit ?? "")}`,
      unit: span(c) };
  }
  const { systolic, diastolic } = c.values;
  if (systolic !== undefined && diastolic !== undefined && c.parameter !== "pulse") {
    return { text: `${round(systolic)}/${round(diastolic)}`, unit: "mmHg" };
  }
  if (c.parameter === null) {
    const sum = c.type === "early_warning" ? c.reasons.map(({ text }) => text.match(/^Score (\d+)$/)?.[1]).find(Boolean) : undefined;
    return { text: humanize(c.type), unit: sum ? `score ${sum}` : "" };
  }
  const name = short[c.parameter] ?? (c.parameter === "weight_kg" ? "" : values.find((v) => v.field === c.parameter)?.name ?? "");
  const meter = latest[c.type];
  const word = meter?.measured_at === c.measured_at ? beyond[meter?.comparator] ?? "" : "";
  return { text: `${name} ${word}${round(displayed(c.values[c.parameter], c.unit ?? ""))}`.trim(), unit: unitOf(c.unit ?? "") };
}

const day = 86_400_000;

/** Whether a value is a day old or older; such values are displayed differently. @param {string | null | undefined} at */
export const isStale = (at) => !at || Date.now() - Date.parse(at) >= day;

/** A time: clock time within half a day, otherwise with its date. @param {string} at */
export const timeText = (at) => (Date.now() - Date.parse(at) < day / 2 ? clock(at) : dateTime(at));
/** A start time in short form. @param {string} at */
const began = (at) => (Date.now() - Date.parse(at) < day / 2 ? clock(at) : dateTime(at).replace(/,.*/, ""));
/** The short MRN. @param {string} mrn */
export const shortMRN = (mrn) => mrn.replace(/^(MRN-?)?0*(?=\d{4})/, "");

/** The reasons for the patient's position, after a hold and a missing dry weight. @param {Row} row */
export const reasonsText = (row) => [row.hold && holdText(row.hold), positionText(row), row.needs_target_weight && "Needs a dry weight"]
  .filter(Boolean).join(" · ");

/** @param {Row} row */
function positionText(row) {
  const reasons = row.concern?.reasons ?? [];
  if (reasons.length === 0) {
    return row.last_reviewed_at ? `Reviewed ${ago(row.last_reviewed_at)}` : "Never reviewed";
  }
  const name = short[row.concern?.parameter ?? ""] ?? ""; // a bare limit names its measure: "SpO₂ ≤ 92"
  const inUnit = (/** @type {string} */ text) => (/^[≤≥] [\d.]+$/.test(text) ? `${text.slice(0, 2)}${displayed(Number(text.slice(2)),
    row.concern?.unit ?? "")}` : inUnits(text));
  return reasons.map(({ text, since }) => `${/^[≤≥]/.test(text) && name ? `${name} ` : ""}${inUnit(text)}${
    since ? ` since ${began(since)}` : ""}`).join(" · ");
}

/** @param {string} name */
export const initials = (name) => name.split(/\s+/).filter(Boolean).map((part) => part[0]).filter((_, i, all) => i === 0
  || i === all.length - 1).join("").toUpperCase();

/** "A. Osei". @param {string} name */
const brief = (name) => name.replace(/^(\S)\S*\s+/, "$1. ");

/** The assignee and the state of their work. @param {Row} row
 *  @returns {{who: string, state: string, initials: string, tone: string}} tone "unassigned" for unassigned work that is not critical */
export function assignee(row) {
  const h = row.holder;
  const urgent = row.handling === "unanswered" ? "critical" : "";
  if (!h) {
    return { who: "", state: (row.provisional?.length ?? 0) > 0 ? "Decide on template" : row.needs_review ? "Review due"
      : row.last_reviewed_at ? `Reviewed ${ago(row.last_reviewed_at)}` : "",
      initials: "", tone: "" };
  }
  const priority = h.priority ? humanize(h.priority) : "";
  if (h.state === "nobody") {
    return { who: "No one yet", state: priority ? `${priority} escalation` : "", initials: "", tone: urgent || "unassigned" };
  }
  const mine = h.by !== null && h.by === me.value?.email;
  const name = h.name ?? h.by ?? "";
  const state = { assigned: `${priority}, not taken yet`, in_progress: "In progress", acknowledged: "Acknowledged", snoozed: h.until
    ? `Snoozed to ${timeText(h.until)}` : "Snoozed" }[h.state];
  return { who: mine ? "You" : brief(name), state, initials: initials(name), tone: h.state === "assigned" ? urgent : "" };
}

/** The row's text for screen readers. @param {Row} row */
export function rowLabel(row) {
  const { text, unit } = valueOf(row.concern, row.latest_vitals);
  const { who, state } = assignee(row);
  const stateText = row.concern && row.concern.state !== "no_data" ? ` ${stateLabels[row.concern.state][1].toLowerCase()},` : "";
  const level = row.handling === "unanswered" ? "Critical, unacknowledged" : row.handling === "handled" ? "Critical, in progress"
    : levelLabels[row.risk_level][1];
  const measured = row.concern?.measured_at ? `, ${ago(row.concern.measured_at)}`
    : "";
  return `${row.patient_name}, ${level}, score ${row.risk_score},${stateText} ${text} ${unit}${measured}. ${reasonsText(row)}. ${[who,
    state].filter(Boolean).join(", ")}`.trim();
}

/** The groups of the list when it is ordered by urgency. @type {[string, string, string][]} key, level, head */
export const groups = [
  ["unanswered", "critical", "Critical, unacknowledged"], ["handled", "critical", "Critical, in progress"],
    ["warning", "warning", "Warning"],
  ["normal", "normal", "Normal"], ["no_data", "no_data", "No data"],
];
/** @param {Row} row */
export const groupOf = (row) => row.handling ?? row.risk_level;

/** The size of each group, from the totals. @param {any} stats @returns {Record<string, number>} */
export const groupCounts = (stats) => ({
  unanswered: stats.critical_unanswered, handled: stats.patients_by_risk_level.critical - stats.critical_unanswered,
  warning: stats.patients_by_risk_level.warning, normal: stats.patients_by_risk_level.normal,
    no_data: stats.patients_by_risk_level.no_data,
});
