// The kinds of readings: what each measures, how it is entered, drawn and bounded. All views use this table; a new kind is one more entry.
import { humanize } from "./format.js";
import { displayed, unitOf } from "./units.js";

/**
 * One number of a reading. `field` is its API name, `name` its display name; `title` is the chart title and `alert` the name in alert
 * texts, where different. `range` is what the API accepts, in stored units; `group` has its bounds; their names begin with `prefix`.
 * @typedef {{field: string, name: string, title?: string, alert?: string, unit: string, tone: string, range: [number, number],
 *   optional?: boolean, group: string, prefix?: string, sides?: string[], changes?: [string, string][]}} Value
 * @typedef {{name: string, values: Value[], choices?: {field: string, name: string, options: [string, string][]}[],
 * line?: (o: any) => string}} Kind
 */

/** @type {Value} */
const pulse = { field: "pulse", name: "Pulse", unit: "bpm", range: [30, 250], tone: "--series-2", optional: true, group: "pulse" };

/** @type {Record<string, Kind>} */
export const vitals = {
  blood_pressure: {
    name: "Blood pressure", line: (o) => `${o.systolic}/${o.diastolic} mmHg`, values: [
      { field: "systolic", name: "Systolic", unit: "mmHg", range: [60, 300], tone: "--series-1", group: "blood_pressure",
        prefix: "systolic_" },
      { field: "diastolic", name: "Diastolic", unit: "mmHg", range: [30, 200], tone: "--series-3", group: "blood_pressure",
        prefix: "diastolic_" }, pulse,
    ],
  },
  weight: {
    name: "Weight", values: [{
      field: "weight_kg", name: "Weight", unit: "kg", range: [20, 500], tone: "--series-4", group: "weight", changes: [
        ["change_threshold_kg", "Warning at a change of (kg)"], ["critical_change_kg", "Critical at a gain of (kg)"],
        ["change_window_days", "Within (days)"],
        ["daily_change_kg", "Warning at a gain from one day to the next of (kg)"], ["target_kg", "Target weight (kg)"],
        ["over_target_kg", "Warning over the target by (kg)"],
        ["slow_gain_kg", "Warning at a gain over weeks of (kg)"], ["slow_gain_critical_kg", "Critical at a gain over weeks of (kg)"],
        ["loss_30_days_percent", "Warning at a loss in 30 days of (%)"], ["loss_90_days_percent", "Warning at a loss in 90 days of (%)"],
      ],
    }],
  },
  pulse_oximetry: {
    name: "Pulse oximetry", line: (o) => `${o.spo2} % SpO₂`, values: [
      { field: "spo2", name: "Oxygen saturation", title: "SpO₂", alert: "SpO2", unit: "%", range: [50, 100],
        tone: "--series-1", group: "pulse_oximetry", sides: ["critical_low", "low", "high"] }, pulse,
    ],
  },
  blood_glucose: {
    name: "Blood glucose", values: [{ field: "glucose_mg_dl", name: "Glucose", unit: "mg/dL", range: [20, 600], tone: "--series-3",
      group: "blood_glucose", sides: ["critical_low", "low", "fasting_high", "high", "critical"] }],
    choices: [{
      field: "meal_context", name: "When", options: [
        ["", "Not specified"], ["fasting", "Fasting"], ["before_meal", "Before meal"], ["after_meal", "After meal"],
        ["bedtime", "Bedtime"], ["random", "Random"],
      ],
    }],
  },
  body_temperature: { name: "Body temperature", values: [{ field: "temperature_c", name: "Temperature", unit: "°C", range: [25, 45],
    tone: "--series-2", group: "body_temperature" }] },
};

/** Bounds that only patients have, not the practice. */
export const patientOnlyBounds = ["target_kg"];

/** Whether a reading counts: it is neither retracted nor suspect. @param {any} o */
export const isCounted = (o) => o.status === "final" && o.review_state !== "suspect";

/** Display names of the kinds by code. @type {Record<string, string>} */
export const kindNames = Object.fromEntries(Object.entries(vitals).map(([kind, { name }]) => [kind, name]));

/** All values without repeats, in the order of the kinds. */
export const values = [...new Set(Object.values(vitals).flatMap((kind) => kind.values))];

/** Alert types that readings raise (the groups of bounds), with their names. @type {[string, string][]} */
export const readingTypes = [...new Map(Object.values(vitals).flatMap((kind) =>
  kind.values.map(({ group, name }) => /** @type {[string, string]} */ ([group, kindNames[group] ?? name]))))];

/** @type {[string, string][]} */
const sides = [["critical_low", "Critical at or below"], ["low", "Warning at or below"], ["fasting_high", "Warning when fasting from"],
  ["high", "Warning from"],
  ["critical", "Critical from"]];

const fourSides = ["critical_low", "low", "high", "critical"];

/** The bounds of a value that can be set, with labels. @param {Value} value @returns {[string, string][]} */
const boundsOf = ({ name, prefix = "", sides: has, changes }) => changes ?? sides.filter(([side]) => (has ?? fourSides).includes(side))
  .map(([side, label]) => [prefix + side, prefix ? `${name}: ${label.toLowerCase()}` : label]);

/**
 * The groups of bounds in the API's order: bounds first, then changes. fields are pairs of name and label.
 * @type {{group: string, name: string, fields: [string, string][]}[]}
 */
export const groups = [...values.filter((v) => !v.changes), ...values.filter((v) => v.changes)].reduce((list, value) => {
  const last = list[list.length - 1];
  if (last?.group === value.group) {
    last.fields.push(...boundsOf(value));
    return list;
  }
  const name = value.prefix ? kindNames[value.group] : value.name;
  return [...list, { group: value.group, name: value.changes ? name : `${name}, ${value.unit}`, fields: boundsOf(value) }];
}, /** @type {{group: string, name: string, fields: [string, string][]}[]} */ ([]));

/** "above 600", "below 20": the words for a value that the meter showed as HI or LO. @type {Record<string, string>} */
export const beyond = { ">": "above ", "<": "below " };

/** A reading as one line of text, in the display units. @param {any} o an observation, or one of the latest vitals with its kind */
export function readingText(o) {
  const kind = vitals[o.observation_type];
  if (!kind) {
    return humanize(o.observation_type);
  }
  const [main] = kind.values;
  const value = displayed(o[main.field] ?? o[main.name.toLowerCase()], main.unit);
  return (kind.line ? kind.line(o) : `${beyond[o.comparator] ?? ""}${value} ${unitOf(main.unit)}`)
    + (o.pulse ? `, pulse ${o.pulse}` : "");
}
