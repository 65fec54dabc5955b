// Display units. The server stores, evaluates and accepts kg and °C; display and input, also of thresholds, use the account's units.
// Source: docs/decisions/roles.md, "User permissions".
import { display } from "../session.js";

/** @typedef {{unit: string, of: (n: number) => number, back: (n: number) => number, by: number}} Unit by is the factor for a
 *  difference */

const pound = 0.45359237; // kg, by definition since 1959

/** @type {Record<string, Unit>} */
const units = {
  lb: { unit: "lb", of: (kg) => kg / pound, back: (lb) => lb * pound, by: 1 / pound },
  F: { unit: "°F", of: (c) => c * 1.8 + 32, back: (f) => (f - 32) / 1.8, by: 1.8 },
};

/** The user's unit in place of a stored unit, or null if they are the same. @param {string} unit @returns {Unit | null} */
function displayUnit(unit) {
  const { weight_unit: weight, temperature_unit: temperature } = display.value;
  return (unit === "kg" ? units[weight] : unit === "°C" ? units[temperature] : null) ?? null;
}

const tenth = (/** @type {number} */ n) => Math.round(n * 10) / 10;

/** The display unit of a value. @param {string} unit as stored */
export const unitOf = (unit) => displayUnit(unit)?.unit ?? unit;

/** A stored number in the display unit, to one decimal place if converted; other values are returned unchanged.
 *  @template T @param {T} n @param {string} unit as stored @returns {T} */
export function displayed(n, unit) {
  const other = displayUnit(unit);
  return other && typeof n === "number" ? /** @type {any} */ (tenth(other.of(n))) : n;
}

/** A difference of two values in the display unit. @template T @param {T} n @param {string} unit @returns {T} */
export function displayedChange(n, unit) {
  const other = displayUnit(unit);
  return other && typeof n === "number" ? /** @type {any} */ (tenth(n * other.by)) : n;
}

/** A typed number in the stored unit, exact enough to display as the same number. @template T @param {T} n
 *  @param {string} unit @returns {T} */
export function stored(n, unit) {
  const other = displayUnit(unit);
  return other && typeof n === "number" ? /** @type {any} */ (Math.round(other.back(n) * 100) / 100) : n;
}

/** A typed difference in the stored unit. @template T @param {T} n @param {string} unit @returns {T} */
export function storedChange(n, unit) {
  const other = displayUnit(unit);
  return other && typeof n === "number" ? /** @type {any} */ (Math.round(n / other.by * 100) / 100) : n;
}

/** All numbers of an object in the display unit: bounds, means, points.
 *  @template {Record<string, any>} O @param {O | null | undefined} of @param {string} unit @returns {O | null | undefined} */
export const allDisplayed = (of, unit) => (of && displayUnit(unit)
  ? /** @type {O} */ (Object.fromEntries(Object.entries(of).map(([name, n]) => [name, displayed(n, unit)]))) : of);

/** A text of the service, which has kg and °C, in the display units: "Gain 5.1 lb within 7 days".
 *  @param {string | null | undefined} text */
export const inUnits = (text) => (text ?? "").replace(/(\d+(?:\.\d+)?) (kg|°C)/g,
  (_, n, unit) => `${displayed(Number(n), unit)} ${unitOf(unit)}`);
