// The effective bounds of a value, its level, and a text for them.

/** @typedef {import("./vitals.js").Value} Value */
/** @typedef {{critical_low?: number | null, low?: number | null, high?: number | null, critical?: number | null}} Bounds */
/** @typedef {"critical" | "warning" | "normal"} Level */

export const isSet = (/** @type {any} */ bound) => typeof bound === "number";

/** The bounds of one value; null where it has none or only bounds on changes. @param {Value} value @param {any} thresholds @returns
 *  {Bounds | null} */
export function boundsOf({ group, prefix = "", changes }, thresholds) {
  const set = changes ? null : thresholds?.[group];
  return set ? Object.fromEntries(Object.entries(set).filter(([name]) => name.startsWith(prefix)).map(([name, bound]) =>
    [name.slice(prefix.length), bound])) : null;
}

/** The level of a value; bounds are inclusive. @param {number} value @param {Bounds | null} b @returns {Level} */
export function levelIn(value, b) {
  const at = (/** @type {any} */ bound, /** @type {number} */ way) => isSet(bound) && (value - bound) * way >= 0;
  return at(b?.critical, 1) || at(b?.critical_low, -1) ? "critical" : at(b?.high, 1) || at(b?.low, -1) ? "warning" : "normal";
}

/** @param {Bounds | null} b @param {string} unit */
export const boundText = (b, unit) => [
  isSet(b?.critical_low) && `critical at ${b?.critical_low} or below`, isSet(b?.low) && `warning at ${b?.low} or below`,
  isSet(b?.high) && `warning from ${b?.high}`, isSet(b?.critical) && `critical from ${b?.critical}`,
].filter(Boolean).join(", ") + (b ? ` ${unit}` : "");
