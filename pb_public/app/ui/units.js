// The units that somebody reads in. The service stores, judges and sends kg and °C; what is shown and typed follows the account. Bounds are
// shown and set in the units they are held in: what is compared is then what was typed, to the last digit.
// Source: docs/decisions/roles.md, "What somebody may do".
import { display } from "../session.js";

/** @typedef {{unit: string, of: (n: number) => number, back: (n: number) => number, by: number}} Unit by is what a difference is
 *  multiplied with */

const pound = 0.45359237; // kg, by definition since 1959

/** @type {Record<string, Unit>} */
const units = {
  lb: { unit: "lb", of: (kg) => kg / pound, back: (lb) => lb * pound, by: 1 / pound },
  F: { unit: "°F", of: (c) => c * 1.8 + 32, back: (f) => (f - 32) / 1.8, by: 1.8 },
};

/** What the person reads instead of a unit of the service, or null when they read that. @param {string} unit @returns {Unit | null} */
function instead(unit) {
  const { weight_unit: weight, temperature_unit: temperature } = display.value;
  return (unit === "kg" ? units[weight] : unit === "°C" ? units[temperature] : null) ?? null;
}

const tenth = (/** @type {number} */ n) => Math.round(n * 10) / 10;

/** The unit that somebody reads a value in. @param {string} unit the service's */
export const unitOf = (unit) => instead(unit)?.unit ?? unit;

/** A number of the service as somebody reads it, to a tenth where it is not the service's own; what is no number stays.
 *  @template T @param {T} n @param {string} unit the service's @returns {T} */
export function shown(n, unit) {
  const other = instead(unit);
  return other && typeof n === "number" ? /** @type {any} */ (tenth(other.of(n))) : n;
}

/** A difference between two of them. @template T @param {T} n @param {string} unit @returns {T} */
export function shownChange(n, unit) {
  const other = instead(unit);
  return other && typeof n === "number" ? /** @type {any} */ (tenth(n * other.by)) : n;
}

/** What somebody typed, as the service takes it: exact enough that it reads the same again. @template T @param {T} n
 *  @param {string} unit @returns {T} */
export function stored(n, unit) {
  const other = instead(unit);
  return other && typeof n === "number" ? /** @type {any} */ (Math.round(other.back(n) * 100) / 100) : n;
}

/** All of an object's numbers as somebody reads them: bounds, means, the points of a line.
 *  @template {Record<string, any>} O @param {O | null | undefined} of @param {string} unit @returns {O | null | undefined} */
export const allShown = (of, unit) => (of && instead(unit)
  ? /** @type {O} */ (Object.fromEntries(Object.entries(of).map(([name, n]) => [name, shown(n, unit)]))) : of);
