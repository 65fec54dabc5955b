// The kinds of reading, as the service has them: what each measures, how it is entered, drawn and bounded. Every view walks
// this one value; another kind is one more entry.
import { words } from "./format.js";
import { shown, unitOf } from "./units.js";

/**
 * One number of a reading. `field` is its name in the contract and `name` the one for people; `title` stands over its chart and
 * `alert` in the words of alerts, where they differ. `group` has its bounds, whose names begin with `prefix`.
 * @typedef {{field: string, name: string, title?: string, alert?: string, unit: string, tone: string, optional?: boolean,
 *   group: string, prefix?: string, sides?: string[], changes?: [string, string][]}} Value
 * @typedef {{name: string, values: Value[], choices?: {field: string, name: string, options: [string, string][]}[],
 * line?: (o: any) => string}} Kind
 */

/** @type {Value} */
const pulse = { field: "pulse", name: "Pulse", unit: "bpm", tone: "--series-2", optional: true, group: "pulse" };

/** @type {Record<string, Kind>} */
export const vitals = {
  blood_pressure: {
    name: "Blood pressure", line: (o) => `${o.systolic}/${o.diastolic} mmHg`, values: [
      { field: "systolic", name: "Systolic", unit: "mmHg", tone: "--series-1", group: "blood_pressure", prefix: "systolic_" },
      { field: "diastolic", name: "Diastolic", unit: "mmHg", tone: "--series-3", group: "blood_pressure", prefix: "diastolic_" }, pulse,
    ],
  },
  weight: {
    name: "Weight", values: [{
      field: "weight_kg", name: "Weight", unit: "kg", tone: "--series-4", group: "weight", changes: [
        ["change_threshold_kg", "Warning at a change of (kg)"], ["critical_change_kg", "Critical at a gain of (kg)"],
        ["change_window_days", "Within (days)"],
        ["daily_change_kg", "Warning at a gain from one day to the next of (kg)"], ["target_kg", "Target weight (kg)"],
        ["over_target_kg", "Warning over the target by (kg)"],
      ],
    }],
  },
  pulse_oximetry: {
    name: "Pulse oximetry", line: (o) => `${o.spo2} % SpO₂`, values: [
      { field: "spo2", name: "Oxygen saturation", title: "SpO₂", alert: "SpO2", unit: "%", tone: "--series-1", group: "pulse_oximetry",
        sides: ["critical_low", "low"] }, pulse,
    ],
  },
  blood_glucose: {
    name: "Blood glucose", values: [{ field: "glucose_mg_dl", name: "Glucose", unit: "mg/dL", tone: "--series-3", group: "blood_glucose" }],
    choices: [{
      field: "meal_context", name: "When", options: [
        ["", "Not said"], ["fasting", "Fasting"], ["before_meal", "Before a meal"], ["after_meal", "After a meal"],
        ["bedtime", "At bedtime"], ["random", "At random"],
      ],
    }],
  },
  body_temperature: { name: "Body temperature", values: [{ field: "temperature_c", name: "Temperature", unit: "°C", tone: "--series-2",
    group: "body_temperature" }] },
};

/** The bounds that only a patient has, never the practice. */
export const ofPatients = ["target_kg"];

/** Whether a reading counts: it was not taken back, and nobody doubts it. @param {any} o */
export const counts = (o) => o.status === "final" && o.review_state !== "suspect";

/** The names of the kinds by their codes. @type {Record<string, string>} */
export const kinds = Object.fromEntries(Object.entries(vitals).map(([kind, { name }]) => [kind, name]));

/** Every value once, in the order of the kinds. */
export const values = [...new Set(Object.values(vitals).flatMap((kind) => kind.values))];

/** The types of alert that readings raise, which are the groups of bounds, with their names. @type {[string, string][]} */
export const readingTypes = [...new Map(Object.values(vitals).flatMap((kind) =>
  kind.values.map(({ group, name }) => /** @type {[string, string]} */ ([group, kinds[group] ?? name]))))];

/** @type {[string, string][]} */
const sides = [["critical_low", "Critical at or below"], ["low", "Warning at or below"], ["high", "Warning from"],
  ["critical", "Critical from"]];

/** What can be set of a value, with labels. @param {Value} value @returns {[string, string][]} */
const boundsOf = ({ name, prefix = "", sides: has, changes }) => changes ?? sides.filter(([side]) => !has || has.includes(side))
  .map(([side, label]) => [prefix + side, prefix ? `${name}: ${label.toLowerCase()}` : label]);

/**
 * The groups of bounds in the contract's order: bounds first, then changes. Fields are names and labels.
 * @type {{group: string, name: string, fields: [string, string][]}[]}
 */
export const groups = [...values.filter((v) => !v.changes), ...values.filter((v) => v.changes)].reduce((list, value) => {
  const last = list[list.length - 1];
  if (last?.group === value.group) {
    last.fields.push(...boundsOf(value));
    return list;
  }
  const name = value.prefix ? kinds[value.group] : value.name;
  return [...list, { group: value.group, name: value.changes ? name : `${name}, ${value.unit}`, fields: boundsOf(value) }];
}, /** @type {{group: string, name: string, fields: [string, string][]}[]} */ ([]));

/** A reading in one line, in the units of whoever reads. @param {any} o an observation, or one of the latest vitals with its kind */
export function reading(o) {
  const kind = vitals[o.observation_type];
  if (!kind) {
    return words(o.observation_type);
  }
  const [main] = kind.values;
  return (kind.line ? kind.line(o) : `${shown(o[main.field] ?? o[main.name.toLowerCase()], main.unit)} ${unitOf(main.unit)}`)
    + (o.pulse ? `, pulse ${o.pulse}` : "");
}
