// Charts over time, drawn on a canvas. Their numbers are also in a table, for users who cannot see the canvas.
import { dateText, drawLimits, color, drawBands, drawMarks } from "./chart_parts.js";
import { breakAtGaps } from "./chart_gaps.js";
import { zone as ownZone } from "./zone.js";
import { classes, html, useEffect, useRef } from "../view.js";

/**
 * @typedef {{label: string, values: (number | null)[], tone?: string, bars?: boolean, points?: boolean}} Line tone names a
  *  color property
 * @typedef {typeof import("/vendor/uplot.js")} Library
 * @typedef {import("./chart_parts.js").Band} Band
 * @typedef {import("./chart_parts.js").Mark} Mark
 * @typedef {import("./chart_parts.js").Limit} Limit
 */

/** Loads the library with the first chart; most users of lists draw none. */
const library = () => import("/vendor/uplot.js").then((module) => module.default);

/** @type {never[]} */
const none = []; // one shared array, so that no dependency changes

/**
 * @param {{title: string, times: number[], lines: Line[], bands?: Band[], marks?: Mark[], limits?: Limit[], unit?: string, height?:
  *  number, dates?: boolean, group?: string,
 *   least?: number, zone?: string, gaps?: boolean, span?: [number, number], bare?: boolean, description?: string}} props
 * times are seconds since 1970, shown in zone or the reader's zone; dates shows calendar days in UTC instead. Charts of a group share their
 * cursor. The axis starts no lower than least; gaps breaks the lines at days without a value; span is the shortest time axis; bare omits
 * the title; description is the text for screen readers. The chart is drawn again when times, lines, bands, marks or limits change: keep
 * the arrays.
 */
export function TimeChart({ title, times, lines, bands = none, marks = none, limits = none, unit = "", height = 240, dates = false,
  group, least, zone, gaps = false, span, bare, description }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const node = /** @type {HTMLDivElement} */ (box.current);
    /** @type {InstanceType<Library> | undefined} */
    let plot;
    let isUnmounted = false;
    const watch = new ResizeObserver(() => plot?.setSize({ width: node.clientWidth, height }));
    const redraw = () => library().then((made) => {
      plot?.destroy();
      plot = isUnmounted ? undefined : draw(made, node);
    });
    void redraw().then(() => isUnmounted || watch.observe(node));
    const changes = [matchMedia("(prefers-color-scheme: dark)"), matchMedia("print")];
    changes.forEach((change) => change.addEventListener("change", redraw));
    return () => {
      isUnmounted = true;
      changes.forEach((change) => change.removeEventListener("change", redraw));
      watch.disconnect();
      plot?.destroy();
      plot = undefined;
    };
  }, [times, lines, bands, marks, limits, zone]);

  const draw = (/** @type {Library} */ uPlot, /** @type {HTMLDivElement} */ node) => {
    const shown = gaps ? breakAtGaps(times, lines, zone) : { times, lines };
    const bars = lines.some((line) => line.bars);
    const clock = dates ? "Etc/UTC" : zone ?? ownZone();
    const room = limits.length > 0 && node.clientWidth > 420 ? 104 : 0;
    return new uPlot({
      width: Math.max(node.clientWidth, 200), height, legend: { live: true }, padding: [8, room || 12, 0, 0],
      tzDate: clock ? (seconds) => uPlot.tzDate(new Date(seconds * 1000), clock) : undefined,
      cursor: { drag: { x: false, y: false }, ...(group ? { sync: { key: group } } : {}) },
      scales: {
        x: { range: (_, low, high) => extendRange(padBars(low, high, bars ? times.length : 0), span) },
        y: { range: (_, low, high) => valueRange(bars ? Math.min(low, 0) : low, high, bands, limits, least) },
      },
      axes: [{ ...axis(), values: (_, ticks, _axis, _space, step) => ticks.map((tick) => dateText(tick, step, clock)) },
        { ...axis(), size: 56, values: (_, ticks) => ticks.map((tick) => `${tick}`), label: unit, labelSize: unit ? 20 : 0,
        labelFont: "12px system-ui" }],
      series: [{ label: "Time" }, ...shown.lines.map((line) => ({
        label: line.label, stroke: color(line.tone ?? "--series-1"), width: 2, spanGaps: !gaps,
          points: { show: line.points ?? times.length < 120, size: 5 },
        ...(line.bars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.7, 40] }), fill: color(line.tone ?? "--series-1"),
          points: { show: false } } : {}),
      }))],
      hooks: { drawClear: [(plot) => drawBands(plot, bands)], draw: [(plot) => {
        drawLimits(plot, limits, room); drawMarks(plot, marks); }] },
    }, /** @type {any} */ ([shown.times, ...shown.lines.map((line) => line.values)]), node);
  };

  return html`<figure class=${classes("chart")}>
    ${!bare && html`<figcaption>${title}</figcaption>`}
    <div ref=${box} role="img" aria-label=${description ?? `${title}: ${times.length} values. See the table below.`}></div>
  </figure>`;
}

const axis = () => ({ stroke: color("--text-soft"), font: "12px system-ui", grid: { stroke: color("--line"), width: 1 },
  ticks: { stroke: color("--line"), width: 1 } });

/** Adds half a bar on both sides, so that the first and the last bar are complete. @param {number} low @param {number} high @param
 *  {number} bars  @returns {[number, number]} */
function padBars(low, high, bars) {
  const half = bars > 1 ? (high - low) / (bars - 1) / 2 : 0;
  return half > 0 ? [low - half, high + half] : [low, high]; // unchanged with no data or a single time
}

/** @param {[number, number]} of @param {[number, number]} [span] @returns {[number, number]} */
const extendRange = (of, span) => (span ? [Math.min(of[0] ?? span[0], span[0]), Math.max(of[1] ?? span[1], span[1])] : of);

/** The range of the value axis: the values, and bounds close to them. @param {number} low @param {number} high @param {Band[]} bands @param
 *  {Limit[]} limits @param {number} [least] @returns {[number, number]} */
function valueRange(low, high, bands, limits, least = -Infinity) {
  const room = Math.max((high - low) * 0.15, 5);
  const near = [...bands.flatMap((band) => [band.from, band.to]), ...limits.map((limit) => limit.value)]
    .filter((edge) => edge !== undefined && edge > low - room * 4 && edge < high + room * 4);
  return [Math.max(Math.min(low, ...(/** @type {number[]} */ (near))) - room, least), Math.max(high, ...(/** @type {number[]}
   *  */ (near))) + room];
}

/** A small trend without axes, next to its numbers. The band from low to high is the normal range.
 *  @param {{values: number[], label: string, low?: number | null, high?: number | null}} props */
export function Spark({ values, label, low, high }) {
  if (values.length < 2) {
    return null;
  }
  const edges = [low, high].filter((edge) => typeof edge === "number");
  const least = Math.min(...values, ...edges);
  const most = Math.max(...values, ...edges);
  const y = (/** @type {number} */ v) => 22 - ((v - least) / (most - least || 1)) * 20;
  const points = values.map((v, i) => `${(i / (values.length - 1)) * 78 + 1},${y(v)}`).join(" ");
  const banded = edges.length > 0;
  const top = typeof high === "number" ? y(high) : 0;
  const bottom = typeof low === "number" ? y(low) : 24;
  return html`<svg class="spark" viewBox="0 0 80 24" width="80" height="24" role="img" aria-label=${label} preserveAspectRatio="none">
    ${banded && html`<rect class="band" x="0" y=${top} width="80" height=${Math.max(0, bottom - top)} />`}<polyline
      points=${points} /></svg>`;
}
