// Charts over time, drawn on a canvas, with the numbers behind them in a table for those who cannot see it.
import uPlot from "/vendor/uplot.js";
import { classes, html, useEffect, useRef } from "../view.js";

/** @param {string} name of a custom property */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * @typedef {{label: string, values: (number | null)[], tone?: string, bars?: boolean, points?: boolean}} Line tone is the name of a colour property
 * @typedef {{from?: number, to?: number, tone: string}} Band values that a threshold covers
 * @typedef {{at: number, text: string, tone: string, value?: number, shape?: "triangle" | "diamond"}} Mark a moment, in seconds; with a value a
 * sign at that point, else a line
 */

/** @type {never[]} */
const none = []; // the same one each time, so that nothing is drawn anew

/**
 * @param {{title: string, times: number[], lines: Line[], bands?: Band[], marks?: Mark[], unit?: string, height?: number, dates?: boolean, group?: string, least?: number}} props
 * times are seconds since 1970; dates shows calendar days in UTC instead of the reader's clock; charts of a group share their cursor; the axis goes no lower than least.
 * It is drawn anew when times, lines, bands or marks are others than before: keep them.
 */
export function TimeChart({ title, times, lines, bands = none, marks = none, unit = "", height = 240, dates = false, group, least }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const node = /** @type {HTMLDivElement} */ (box.current);
    let plot = draw(node);
    const watch = new ResizeObserver(() => plot.setSize({ width: node.clientWidth, height }));
    watch.observe(node);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => { plot.destroy(); plot = draw(node); };
    const paper = matchMedia("print");
    scheme.addEventListener("change", redraw);
    paper.addEventListener("change", redraw);
    return () => { scheme.removeEventListener("change", redraw); paper.removeEventListener("change", redraw); watch.disconnect(); plot.destroy(); };
  }, [times, lines, bands, marks]);

  const draw = (/** @type {HTMLDivElement} */ node) => new uPlot({
    width: Math.max(node.clientWidth, 200), height, legend: { live: true },
    tzDate: dates ? (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : undefined,
    cursor: { drag: { x: false, y: false }, ...(group ? { sync: { key: group } } : {}) },
    scales: { x: { range: (_, low, high) => sides(low, high, lines.some((line) => line.bars) ? times.length : 0) }, y: { range: (_, low, high) => reach(lines.some((line) => line.bars) ? Math.min(low, 0) : low, high, bands, least) } },
    axes: [axis(), { ...axis(), size: 56, values: (_, ticks) => ticks.map((tick) => `${tick}`), label: unit, labelSize: unit ? 20 : 0, labelFont: "12px system-ui" }],
    series: [{ label: "Time" }, ...lines.map((line) => ({
      label: line.label, stroke: colour(line.tone ?? "--series-1"), width: 2, spanGaps: true, points: { show: line.points ?? times.length < 120, size: 5 },
      ...(line.bars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.7, 40] }), fill: colour(line.tone ?? "--series-1"), points: { show: false } } : {}),
    }))],
    hooks: { drawClear: [(plot) => shade(plot, bands)], draw: [(plot) => strike(plot, marks)] },
  }, /** @type {any} */ ([times, ...lines.map((line) => line.values)]), node);

  return html`<figure class=${classes("chart")}>
    <figcaption>${title}</figcaption>
    <div ref=${box} role="img" aria-label=${`${title}: ${times.length} values. The table below has them.`}></div>
  </figure>`;
}

const axis = () => ({ stroke: colour("--text-soft"), font: "12px system-ui", grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } });

/** Half a bar's room on both sides, that the first and the last are whole. @param {number} low @param {number} high @param {number} bars @returns {[number, number]} */
function sides(low, high, bars) {
  const half = bars > 1 ? (high - low) / (bars - 1) / 2 : 0;
  return half > 0 ? [low - half, high + half] : [low, high]; // untouched when there is nothing, or one moment
}

/** Room for the values, and for thresholds that are near them. @param {number} low @param {number} high @param {Band[]} bands @param {number} [least] @returns {[number, number]} */
function reach(low, high, bands, least = -Infinity) {
  const room = Math.max((high - low) * 0.15, 5);
  const near = bands.flatMap((band) => [band.from, band.to]).filter((edge) => edge !== undefined && edge > low - room * 4 && edge < high + room * 4);
  return [Math.max(Math.min(low, ...(/** @type {number[]} */ (near))) - room, least), Math.max(high, ...(/** @type {number[]} */ (near))) + room];
}

/** @param {uPlot} plot @param {Band[]} bands */
function shade(plot, bands) {
  const { left, top, width, height } = plot.bbox;
  for (const band of bands) {
    const above = band.to === undefined ? top : plot.valToPos(band.to, "y", true);
    const below = band.from === undefined ? top + height : plot.valToPos(band.from, "y", true);
    const from = Math.max(above, top);
    const to = Math.min(below, top + height);
    if (to > from) {
      plot.ctx.fillStyle = colour(band.tone);
      plot.ctx.fillRect(left, from, width, to - from);
    }
  }
}

/** @param {uPlot} plot @param {Mark[]} marks */
function strike(plot, marks) {
  const { top, height } = plot.bbox;
  for (const mark of marks) {
    const x = plot.valToPos(mark.at, "x", true);
    if (mark.value !== undefined) {
      sign(plot.ctx, mark, x, plot.valToPos(mark.value, "y", true));
      continue;
    }
    plot.ctx.strokeStyle = colour(mark.tone);
    plot.ctx.setLineDash([4, 4]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, top);
    plot.ctx.lineTo(x, top + height);
    plot.ctx.stroke();
    plot.ctx.setLineDash([]);
  }
}

/** A shape beside the colour, as the badges have it. @param {CanvasRenderingContext2D} ctx @param {Mark} mark @param {number} x @param {number} y */
function sign(ctx, mark, x, y) {
  const r = 6 * devicePixelRatio;
  const corners = mark.shape === "triangle" ? [[0, -r], [r, r * 0.8], [-r, r * 0.8]] : [[0, -r], [r, 0], [0, r], [-r, 0]];
  ctx.beginPath();
  corners.forEach(([dx, dy], i) => (i === 0 ? ctx.moveTo(x + dx, y + dy) : ctx.lineTo(x + dx, y + dy)));
  ctx.closePath();
  ctx.fillStyle = colour(mark.tone);
  ctx.fill();
  ctx.strokeStyle = colour("--surface");
  ctx.lineWidth = devicePixelRatio;
  ctx.stroke();
}

/** A small trend without axes; what it says stands beside it in numbers. @param {{values: number[], label: string}} props */
export function Spark({ values, label }) {
  if (values.length < 2) {
    return null;
  }
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const points = values.map((v, i) => `${(i / (values.length - 1)) * 78 + 1},${22 - ((v - low) / span) * 20}`).join(" ");
  return html`<svg class="spark" viewBox="0 0 80 24" width="80" height="24" role="img" aria-label=${label}><polyline points=${points} /></svg>`;
}
