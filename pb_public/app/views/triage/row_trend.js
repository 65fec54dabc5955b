// The trend of a row: fourteen days of the value, its normal range, gaps without readings, and a mark at the end.
import { displayed } from "../../ui/units.js";
import { html } from "../../view.js";
import { stateLabels } from "./labels.js";

/** @typedef {import("./order.js").Row} Row */

const width = 104;
const height = 28;
const edge = 4; // room for the sign
const days = 14;
const gap = 3 * 86_400_000; // without a value that break the line

/** @param {number} n */
const near = (n) => Math.round(n * 10) / 10;

/** The shapes of the trend in SVG units. @param {Row} row @param {number} [now] */
export function drawn(row, now = Date.now()) {
  const points = row.trend ?? [];
  const { low, high } = row.concern?.bounds ?? { low: null, high: null };
  const all = points.map((p) => p.value);
  const room = (Math.max(...all) - Math.min(...all)) * 1.5 + Math.max(...all) * 0.06;
  // Distant bounds are excluded: they would flatten the line.
  const close = (/** @type {number | null} */ bound) => bound !== null && all.some((value) => Math.abs(value - bound) <= room);
  const reach = [...all, .../** @type {number[]} */ ([low, high].filter(close))];
  const least = Math.min(...reach);
  const span = Math.max(...reach) - least || 1;
  const x = (/** @type {string} */ at) => near(edge + (width - 2 * edge) * Math.min(1,
    Math.max(0, 1 - (now - Date.parse(at)) / (days * 86_400_000))));
  const y = (/** @type {number} */ value) => near(height - edge - ((value - least) / span) * (height - 2 * edge));
  const line = points.map((p, i) => `${i === 0 || Date.parse(p.at) - Date.parse(points[i - 1].at) > gap ? "M"
    : "L"}${x(p.at)} ${y(p.value)}`).join("");
  const clamp = (/** @type {number} */ n) => Math.min(height, Math.max(0, n));
  const top = high === null ? 0 : clamp(y(high));
  const bottom = low === null ? height : clamp(y(low));
  const edges = /** @type {number[]} */ ([high, low].filter((bound) => bound !== null)).map(y).filter((at) => at >= 0 && at <= height);
  return { line, top, bottom, edges, last: points.length > 0 ? { x: x(points[points.length - 1].at),
    y: y(points[points.length - 1].value) } : null };
}

/** @type {Record<string, (x: number, y: number) => string>} */
const signs = {
  critical: (x, y) => `M${x} ${y - 4.5}L${x + 4.5} ${y + 3.5}L${x - 4.5} ${y + 3.5}Z`,
  warning: (x, y) => `M${x} ${y - 4.5}L${x + 4.5} ${y}L${x} ${y + 4.5}L${x - 4.5} ${y}Z`,
  in_range: (x, y) => `M${x - 2.5} ${y}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0Z`,
};

/** @param {{row: Row}} props */
export function Spark({ row }) {
  const { line, top, bottom, edges, last } = drawn(row);
  if (!last) {
    return html`<span class="spark" aria-hidden="true"></span>`;
  }
  const state = row.concern?.state ?? "no_data";
  const judged = row.concern && (row.concern.bounds.low !== null || row.concern.bounds.high !== null);
  const { x, y } = { x: Math.min(last.x, width - 5), y: Math.min(Math.max(last.y, 5), height - 5) };
  const label = `Fourteen days: ${row.trend?.slice(-5).map((p) => displayed(p.value, row.concern?.unit ?? ""))
    .join(", ")}. ${stateLabels[state][1]}`;
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img" aria-label=${label}>
    ${judged && html`<rect class="band" x="0" y=${top} width=${width} height=${Math.max(0, bottom - top)} />`}
    ${edges.length > 0 && html`<path class="edge" d=${edges.map((at) => `M0 ${at}H${width}`).join("")} />`}
    <path class="line" d=${line} /><path class=${`sign ${state}`} d=${(signs[state] ?? signs.in_range)(x, y)} />
  </svg>`;
}
