// The small trend of a row: the last values, the normal range shaded, and the level's sign at the last value.
import { html } from "../../view.js";
import { vitals } from "../../ui/vitals.js";

/** @typedef {import("./labels.js").Group} Group */

const width = 100;
const height = 26;
const edge = 5; // room for the sign

/** @type {Record<string, (x: number, y: number) => string>} */
const signs = {
  critical: (x, y) => `M${x} ${y - 4}l4 7h-8z`,
  warning: (x, y) => `M${x} ${y - 4}l4 4l-4 4l-4 -4z`,
};
const dot = (/** @type {number} */ x, /** @type {number} */ y) => `M${x - 2.5} ${y}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0z`;

/** The bound of the latest alert, if it is of the drawn value, and whether values should be below it. @param {Group} group */
function boundOf({ type, latest }) {
  const [main] = vitals[type]?.values ?? [];
  const drawn = main && !main.changes && latest && (latest.parameter === main.field || main.field.startsWith(`${latest.parameter}_`));
  return drawn && latest.threshold !== null && latest.value !== null ? { at: latest.threshold, below: latest.value >= latest.threshold }
    : null;
}

/** @param {{group: Group}} props */
export function Trend({ group }) {
  const { trend, level } = group;
  if (trend.length < 2) {
    return null;
  }
  const bound = boundOf(group);
  const all = bound ? [...trend, bound.at] : trend;
  const low = Math.min(...all);
  const span = Math.max(...all) - low || 1;
  const x = (/** @type {number} */ i) => Math.round(edge + (i / (trend.length - 1)) * (width - 2 * edge));
  const y = (/** @type {number} */ value) => Math.round((height - edge - ((value - low) / span) * (height - 2 * edge)) * 10) / 10;
  const line = trend.map((value, i) => `${i === 0 ? "M" : "L"}${x(i)} ${y(value)}`).join("");
  const last = /** @type {[number, number]} */ ([x(trend.length - 1), y(trend[trend.length - 1])]);
  const should = bound ? `, should be ${bound.below ? "below" : "above"} ${bound.at}` : "";
  return html`<svg class="trend" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img"
    aria-label=${`The last ${trend.length}: ${trend.join(", ")}${should}`}>
    ${bound && html`<rect class="band" x="0" y=${bound.below ? y(bound.at) : 0} width=${width}
      height=${bound.below ? height - y(bound.at) : y(bound.at)} />
      <path class="bound" d=${`M0 ${y(bound.at)}H${width}`} />`}
    <path class="line" d=${line} /><path class=${`end ${level}`} d=${(signs[level] ?? dot)(...last)} /></svg>`;
}
