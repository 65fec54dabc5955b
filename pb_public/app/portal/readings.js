// What the portal states about a reading: its text, its place among the bounds, and whether a typed value is unlikely.
import { boundsOf, isSet } from "../ui/bounds.js";
import { displayed, unitOf } from "../ui/units.js";
import { vitals } from "../ui/vitals.js";
import { classes, html } from "../view.js";

/** The number of a reading, and its unit and pulse, in the display units. @param {any} o */
function partsOf(o) {
  const [{ field, unit }] = vitals[o.observation_type].values;
  const number = o.observation_type === "blood_pressure" ? `${o.systolic}/${o.diastolic}` : displayed(o[field], unit);
  return [number, `${unitOf(unit)}${o.pulse ? ` · ♥ ${o.pulse}` : ""}`];
}

/** A reading as text without words. @param {any} o */
export const valueText = (o) => partsOf(o).join(" ");

/** A reading as a large number and a small unit. @param {{of: any}} props */
export function Value({ of }) {
  const [number, unit] = partsOf(of);
  return html`<strong class=${classes("value", of.status === "entered_in_error" && "struck")}>${number} <small>${unit}</small></strong>`;
}

/** The bounds of a value of a kind. @param {string} kind @param {string} field @param {any} thresholds */
export function boundsFor(kind, field, thresholds) {
  const value = vitals[kind].values.find((one) => one.field === field);
  return value ? boundsOf(value, thresholds) : null;
}

/** Worst first. */
const verdicts = /** @type {const} */ (["savedHigh", "savedLow", "savedAbove", "savedBelow", "savedGood", "savedPlain"]);

/** The sentence after a reading is saved: the worst of its values. @param {any} o @param {any} thresholds */
export function verdictOf(o, thresholds) {
  const found = vitals[o.observation_type].values.filter(({ field }) => typeof o[field] === "number").map(({ field }) => {
    const b = boundsFor(o.observation_type, field, thresholds);
    const over = (/** @type {any} */ bound) => isSet(bound) && o[field] >= bound;
    const under = (/** @type {any} */ bound) => isSet(bound) && o[field] <= bound;
    return over(b?.critical) ? "savedHigh" : under(b?.critical_low) ? "savedLow" : over(b?.high) ? "savedAbove" : under(b?.low)
      ? "savedBelow" : isSet(b?.high) || isSet(b?.low) ? "savedGood" : "savedPlain";
  });
  return verdicts.find((verdict) => found.includes(verdict)) ?? "savedPlain";
}

/** The fields of a body that no device shows. @param {string} kind @param {Record<string, any>} body */
export const unlikelyFields = (kind, body) => vitals[kind].values.filter(({ field, range: [low, high] }) =>
  typeof body[field] === "number" && (body[field] < low || body[field] > high)).map(({ field }) => field);
