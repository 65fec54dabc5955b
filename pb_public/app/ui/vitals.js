// The kinds of readings: what each measures, how it is entered, drawn and bounded. All views use this table; a new kind is one more entry.
import { humanize } from "./format.js";
import { displayed, displayedChange, stored, storedChange, unitOf } from "./units.js";

/**
 * One number of a reading. `field` is its API name, `name` its display name; `title` is the chart title and `alert` the name in alert
 * texts, where different. `range` is what the API accepts, in stored units; `group` has its bounds; their names begin with `prefix`.
 * @typedef {{field: string, name: string, title?: string, alert?: string, unit: string, tone: string, range: [number, number],
 *   optional?: boolean, group: string, prefix?: string, sides?: string[], changes?: [string, string, string][]}} Value
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
        ["change_threshold_kg", "Warning at a change of", "kg"], ["critical_change_kg", "Critical at a gain of", "kg"],
        ["change_window_days", "Within", "days"], ["daily_change_kg", "Warning at a gain from one day to the next of", "kg"],
        ["target_kg", "Target weight", "kg"], ["over_target_kg", "Warning over the target by", "kg"],
        ["slow_gain_kg", "Warning at a gain over weeks of", "kg"], ["slow_gain_critical_kg", "Critical at a gain over weeks of", "kg"],
        ["loss_30_days_percent", "Warning at a loss in 30 days of", "%"],
        ["loss_90_days_percent", "Warning at a loss in 90 days of", "%"],
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

/** The sides of a value that have bounds, in the order of the grid. @type {[string, string][]} */
export const sides = [["critical_low", "Critical at or below"], ["low", "Warning at or below"], ["high", "Warning from"],
  ["critical", "Critical from"]];
const fasting = "fasting_high";

/**
 * A bound that can be set. row is the line of the grid in which it stands under its side; a bound on a change has no side.
 * @typedef {{field: string, label: string, unit: string, row: string, side: string | null}} Bound
 */

/** @param {Value} value @returns {Bound[]} */
const boundsOf = ({ name, prefix = "", unit, sides: has = sides.map(([side]) => side), changes }) => changes?.map(([field, label, of]) =>
  ({ field, label, unit: of, row: label, side: null })) ?? [
  ...sides.filter(([side]) => has.includes(side)).map(([side, label]) =>
    ({ field: prefix + side, label: `${name}: ${label.toLowerCase()}`, unit, row: name, side })),
  ...(has.includes(fasting) ? [{ field: fasting, label: `${name}, fasting: warning from`, unit,
    row: `${name}, fasting`, side: "high" }] : []),
];

/** The groups of bounds in the API's order: bounds first, then changes. @type {{group: string, name: string, bounds: Bound[]}[]} */
export const groups = [...values.filter((v) => !v.changes), ...values.filter((v) => v.changes)].reduce((list, value) => {
  const last = list[list.length - 1];
  if (last?.group === value.group) {
    last.bounds.push(...boundsOf(value));
    return list;
  }
  return [...list, { group: value.group, name: value.prefix ? kindNames[value.group] : value.name, bounds: boundsOf(value) }];
}, /** @type {{group: string, name: string, bounds: Bound[]}[]} */ ([]));

/** A stored limit in the display unit. @template N @param {Bound} bound @param {N} n */
export const displayedLimit = ({ side, unit, field }, n) => (side === null && field !== "target_kg" ? displayedChange(n, unit)
  : displayed(n, unit));

/** A typed limit in the stored unit; the limit now in force if it is displayed as the same number.
 *  @param {Bound} bound @param {number | null} typed @param {number | null} now */
export function storedLimit(bound, typed, now) {
  if (typed === null || typed === displayedLimit(bound, now)) {
    return typed === null ? null : now;
  }
  return bound.side === null && bound.field !== "target_kg" ? storedChange(typed, bound.unit) : stored(typed, bound.unit);
}

/** Limits in words, such as those of a template: "Systolic: warning from 135 mmHg".
 *  @param {Record<string, Record<string, number | null> | null>} thresholds */
export const limitsText = (thresholds) => groups.filter(({ group }) => group in thresholds).map(({ group, name, bounds }) => {
  const of = thresholds[group];
  return of === null ? `${name}: off` : bounds.filter(({ field }) => typeof of[field] === "number").map((bound) =>
    `${bound.label} ${displayedLimit(bound, of[bound.field])} ${unitOf(bound.unit)}`).join(", ");
}).filter(Boolean).join("; ");

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
