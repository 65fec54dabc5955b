// Chooses a zone by its place or common name: "chicago", "central".
import { Combo } from "./combo.js";
import { clock } from "./format.js";
import { zoneLong } from "./zone.js";
import { html, useState } from "../view.js";

/** US zones come first. */
const first = ["America/New_York", "America/Chicago", "America/Denver", "America/Phoenix", "America/Los_Angeles", "America/Anchorage",
  "Pacific/Honolulu", "America/Puerto_Rico"];
const zones = () => [...first, ...Intl.supportedValuesOf("timeZone").filter((one) => !first.includes(one) && one.includes("/"))];

/** @param {string} zone @returns {import("./combo.js").Option} */
const optionOf = (zone) =>
  ({ value: zone, text: zone.replaceAll("_", " "), more: `${zoneLong(zone)}, ${clock(new Date().toISOString(), zone)} now` });

/** @param {string} term */
const find = async (term) => {
  const words = term.toLowerCase().split(/\s+/).filter(Boolean);
  const named = (/** @type {string} */ zone) => `${zone.replaceAll("_", " ")} ${zoneLong(zone)}`.toLowerCase();
  const fits = (/** @type {string} */ zone) => words.every((word) => named(zone).includes(word));
  return zones().filter(fits).slice(0, 20).map(optionOf);
};

/** @param {{label?: string, name?: string, value?: string | null, hint?: string, errors?: Record<string, string[]>}} props */
export function ZonePicker({ label = "Time zone", name = "time_zone", value, hint, errors }) {
  const [at] = useState(value ? optionOf(value) : null);
  return html`<${Combo} label=${label} name=${name} value=${at} find=${find} eager hint=${hint} errors=${errors}
    placeholder="Place or name" nothing="No zones match." />`;
}
