// Groups alerts by cause: one row for alerts that are acknowledged together.
import { humanize } from "../../ui/format.js";
import { displayed, unitOf } from "../../ui/units.js";
import { readingTypes, vitals } from "../../ui/vitals.js";

const names = Object.fromEntries(readingTypes);
/** @param {string} type */
export const causeName = (type) => names[type] ?? humanize(type);

/** @typedef {{type: string, level: string, alerts: any[], first: string, last: string, value: string}} Cause alerts are sorted newest first
 *  */

const urgency = ["critical", "warning", "no_data", "normal"];
const units = Object.fromEntries(Object.values(vitals).flatMap(({ values }) => values).map(({ group, unit }) => [group, unit]));

/** The measured value in short form. @param {any} alert @param {any[]} readings */
function valueOf(alert, readings) {
  const measured = alert.type === "blood_pressure" && readings.find(({ id }) => id === alert.observation_id);
  if (measured) {
    return `${measured.systolic}/${measured.diastolic}`;
  }
  return typeof alert.value === "number" ? `${displayed(alert.value, units[alert.type])} ${unitOf(units[alert.type] ?? "")}`.trim() : "";
}

/** The measurement time if loaded, otherwise the alert's time. @param {any} alert @param {any[]} readings @returns
 *  {string} */
export const timeOf = (alert, readings) => readings.find(({ id }) => id === alert.observation_id)?.measured_at ?? alert.created_at;

/** Sorted by urgency, then newest first. @param {any[]} alerts @param {any[]} [readings] loaded readings @returns {Cause[]} */
export function causes(alerts, readings = []) {
  /** @type {Map<string, any[]>} */
  const by = new Map();
  for (const alert of alerts) {
    const key = `${alert.type} ${alert.level}`;
    by.set(key, [...(by.get(key) ?? []), alert]);
  }
  return [...by.values()].map((list) => {
    const at = (/** @type {any} */ alert) => timeOf(alert, readings);
    const sorted = [...list].sort((a, b) => Date.parse(at(b)) - Date.parse(at(a)));
    const [newest] = sorted;
    return { type: newest.type, level: newest.level, alerts: sorted, first: at(sorted[sorted.length - 1]), last: at(newest),
      value: valueOf(newest, readings) };
  }).sort((a, b) => urgency.indexOf(a.level) - urgency.indexOf(b.level) || Date.parse(b.last) - Date.parse(a.last));
}
