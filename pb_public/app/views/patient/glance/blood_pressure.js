// The blood pressure chart with target ranges, and a table of means below it.
import { TimeChart } from "../../../ui/chart.js";
import { boundsOf, boundText, isSet, levelIn } from "../../../ui/bounds.js";
import { dateTime } from "../../../ui/format.js";
import { Table } from "../../../ui/table.js";
import { isCounted, vitals } from "../../../ui/vitals.js";
import { ZoneNote } from "../../../ui/time.js";
import { html, useMemo } from "../../../view.js";
import { periods, seconds, isSuspect } from "../reading_periods.js";

/** @typedef {import("../reading_periods.js").Observation} Observation */

const [systolic, diastolic] = vitals.blood_pressure.values;
const shapes = /** @type {const} */ ({ critical: "triangle", warning: "diamond", normal: "ring" });
const tones = { critical: "--mark-critical", warning: "--mark-warning" };

/** @param {{observations: Observation[], thresholds: any, summary: any, days: number, span: [number, number], zone: string | undefined,
 *  choose: (days: number) => void,
 *    table: boolean, show: (as: string | undefined) => void, implausible: any[]}} props */
export function Pressure({ observations, thresholds, summary, days, span, zone, choose, table, show, implausible }) {
  const all = useMemo(() => observations.filter((o) => o.observation_type === "blood_pressure" && o.status === "final"), [observations]);
  const drawn = useMemo(() => draw(all, thresholds, implausible), [all, thresholds, implausible]);
  const doubted = all.filter(isSuspect).length;
  const wrong = observations.filter((o) => o.observation_type === "blood_pressure" && o.status === "entered_in_error").length;
  return html`<section class="card pressure" aria-labelledby="pressure">
    <div class="heading"><h2 id="pressure">Blood pressure, mmHg</h2>
      <p class="legend no-print"><span><span class="dot one" aria-hidden="true"></span> systolic</span> <span><span class="dot two"
        aria-hidden="true"></span> diastolic</span>
        <span>shaded: in range</span> <span><span class="mark-warning" aria-hidden="true">◆</span> warning</span>
        <span><span class="mark-critical" aria-hidden="true">▲</span> critical</span>${doubted > 0
          && html` <span><b class="doubt">?</b> suspect</span>`}</p>
      <div class="choices no-print" role="group"
        aria-label="Time span">${periods.map((n, i) => html`<button key=${n} aria-pressed=${n === days ? "true" : "false"}
        aria-label=${`${n} days`} onClick=${() => choose(n)}>${i === 0 ? `${n} days` : n}</button>`)}</div>
      <button class="quiet no-print" aria-pressed=${table ? "true" : "false"}
        onClick=${() => show(table ? undefined : "table")}>Table</button>
    </div>
    ${all.length === 0 ? html`<p class="state">No blood pressure readings in ${days} days.</p>`
      : table ? html`<div class="tall"><${Table} zone=${false} caption=${`Blood pressure of ${days} days, newest first`}
      rows=${[...all].reverse()} columns=${columns(thresholds, zone)} /></div>`
        : html`<${TimeChart} bare title="Blood pressure" description=${inWords(all, thresholds, days, zone)} ...${drawn} span=${span}
        zone=${zone} gaps height=${300} group="vitals" />`}
    <${Means} summary=${summary} thresholds=${thresholds} />
    <p class="note-line"><${ZoneNote} of=${zone}
      owner="the patient’s" />. ${[sourceText(summary, days), doubted > 0
        && `${doubted} suspect ${doubted === 1 ? "reading is" : "readings are"} marked and excluded`,
      wrong > 0 && `${wrong} retracted`, implausible.length > 0
        && `${implausible.length} implausible (dashed line)`].filter(Boolean).join(". ")}. Gaps are two or more days without a reading.
      ${thresholds && html`<span class="unseen">Systolic: ${boundText(boundsOf(systolic, thresholds),
        "mmHg")}. Diastolic: ${boundText(boundsOf(diastolic, thresholds), "mmHg")}.</span>`}</p>
  </section>`;
}

/** @param {Observation[]} all @param {any} thresholds @param {any[]} implausible */
function draw(all, thresholds, implausible) {
  const bounds = [boundsOf(systolic, thresholds), boundsOf(diastolic, thresholds)];
  const fields = /** @type {const} */ (["systolic", "diastolic"]);
  const lines = [systolic, diastolic].map((value, i) =>
    ({ label: value.name, values: all.map((o) => (isCounted(o) ? o[fields[i]] ?? null : null)), tone: value.tone, points: false }));
  const marks = [systolic, diastolic].flatMap((value, i) => all.filter((o) => typeof o[fields[i]] === "number").map((o) =>
    markOf(o, Number(o[fields[i]]), bounds[i], value.tone, all.length)))
    .filter((mark) => mark !== null);
  const lost = implausible.map((alert) => ({ at: Date.parse(alert.created_at) / 1000, text: alert.message ?? "",
    tone: "--mark-warning" }));
  const [s, d] = bounds;
  const floor = Math.max(...[s?.low, d?.high].filter(isSet).map(Number), -Infinity);
  const bands = [
    isSet(s?.high) && floor > -Infinity && { from: floor, to: Number(s?.high), tone: "--band-one" },
    isSet(d?.high) && isSet(d?.low) && { from: Number(d?.low), to: Number(d?.high), tone: "--band-two" },
  ].filter((band) => band !== false);
  const limits = [
    isSet(s?.critical) && { value: Number(s?.critical), text: "systolic", tone: "--critical", shape: "triangle", dash: [6, 4] },
    isSet(d?.critical) && { value: Number(d?.critical), text: "diastolic", tone: "--critical", shape: "triangle", dash: [2, 3] },
    isSet(s?.high) && { value: Number(s?.high), text: "systolic", tone: "--warning", shape: "diamond", dash: [1, 0] },
    isSet(d?.high) && { value: Number(d?.high), text: "diastolic", tone: "--warning", shape: "diamond", dash: [1, 0] },
  ].filter((limit) => limit !== false);
  return { times: all.map(seconds), lines, bands, limits: /** @type {any} */ (limits), marks: [...marks, ...lost] };
}

/** @param {Observation} o @param {number} value @param {any} bounds @param {string} tone @param {number} many */
function markOf(o, value, bounds, tone, many) {
  const level = levelIn(value, bounds);
  if (isSuspect(o)) {
    return { at: seconds(o), value, text: "suspect", tone: "--unsure", shape: /** @type {const} */ ("question") };
  }
  return level === "normal" && many > 160 ? null : { at: seconds(o), value, text: level, tone: tones[level] ?? tone,
    shape: shapes[level] };
}

/** Describes the chart for screen readers. @param {Observation[]} all @param {any} thresholds @param {number} days @param {string |
 *  undefined} zone */
function inWords(all, thresholds, days, zone) {
  const counted = all.filter(isCounted);
  const last = counted[counted.length - 1];
  const out = (/** @type {string} */ level) =>
    counted.filter((o) => [systolic, diastolic].some((value) => levelIn(Number(o[value.field]),
      boundsOf(value, thresholds)) === level)).length;
  return `Blood pressure of ${days} days: ${counted.length} readings${last
    ? `, the last ${last.systolic}/${last.diastolic}, ${dateTime(last.measured_at, zone)}` : ""}; ${out("critical")
  } with a critical value, ${out("warning")} with a warning. Use the Table button for a table.`;
}

/** @param {any} thresholds @param {string | undefined} zone */
const columns = (thresholds, zone) => [
  { name: "measured_at", head: "Measured", cell: (o) => dateTime(o.measured_at, zone) },
  { name: "systolic", head: "Systolic", number: true, cell: (o) => level(o.systolic, boundsOf(systolic, thresholds)) },
  { name: "diastolic", head: "Diastolic", number: true, cell: (o) => level(o.diastolic, boundsOf(diastolic, thresholds)) },
  { name: "pulse", head: "Pulse", number: true },
  { name: "state", head: "Counts", cell: (o) => (isSuspect(o) ? "No: suspect" : "Yes") },
];

const signs = { critical: "▲", warning: "◆", normal: "" };

/** A value with the sign and text of its level. @param {number | null} value @param {any} bounds */
export function level(value, bounds, text = String(value)) {
  if (value === null) {
    return "–";
  }
  const at = levelIn(value, bounds);
  return at === "normal" ? text : html`<strong class=${`mark-${at}`}><span aria-hidden="true">${signs[at]}</span> ${text}<span
    class="unseen"> ${at}</span></strong>`;
}

/** @param {any} summary @param {number} days */
function sourceText(summary, days) {
  const group = summary?.periods.find((/** @type {any} */ period) => period.days === days)?.blood_pressure;
  return group && group.readings > 0 && (group.typed === 0 ? "All from devices"
    : `${group.typed} of ${group.readings} entered manually`);
}

const whole = (/** @type {number} */ n) => Math.floor(n + 0.5);
const both = (/** @type {any} */ part) => (part.mean_systolic === null ? "–"
  : `${whole(part.mean_systolic)}/${whole(part.mean_diastolic)}`);

/** @param {{summary: any, thresholds: any}} props */
function Means({ summary, thresholds }) {
  if (!summary) {
    return html`<p class="state waiting" role="status">Loading</p>`;
  }
  const rows = summary.periods.map((/** @type {any} */ period) => ({ ...period, bp: period.blood_pressure }));
  return html`<${Table} zone=${false} caption="Blood pressure: means of the last days" rows=${rows} keyOf=${(row) => row.days} columns=${[
    { name: "days", head: "Mean", cell: (row) => html`<strong>${row.days} days</strong>` },
    { name: "all", head: "All day", number: true,
      cell: (row) => html`<strong title=${`${row.bp.mean_systolic}/${row.bp.mean_diastolic}`}>${meanLevel(row.bp, thresholds)}</strong>` },
    { name: "morning", head: "Morning 4–12", number: true, cell: (row) => both(row.bp.morning) },
    { name: "evening", head: "Evening 16–24", number: true, cell: (row) => both(row.bp.evening) },
    { name: "readings", head: "Readings, days", number: true, cell: (row) => `${row.bp.readings}, ${row.bp.days}` },
    { name: "range", head: "Share in range", cell: (row) => html`<${Share} percent=${row.bp.in_range_percent} />` },
    { name: "pulse", head: "Pulse", number: true, cell: (row) => (row.pulse.mean === null ? "–" : whole(row.pulse.mean)) },
  ]} />`;
}

/** @param {any} bp @param {any} thresholds */
function meanLevel(bp, thresholds) {
  if (bp.mean_systolic === null) {
    return "–";
  }
  const worse = levelIn(bp.mean_diastolic, boundsOf(diastolic, thresholds));
  const own = levelIn(bp.mean_systolic, boundsOf(systolic, thresholds));
  const at = [own, worse].includes("critical") ? "critical" : [own, worse].includes("warning") ? "warning" : "normal";
  return at === "normal" ? both(bp) : html`<span class=${`mark-${at}`}><span aria-hidden="true">${signs[at]}</span> ${both(bp)}<span
    class="unseen"> ${at}</span></span>`;
}

/** @param {{percent: number | null}} props */
const Share = ({ percent }) => (percent === null ? "–"
  : html`<span class="share"><span class="bar" aria-hidden="true"><span
  style=${{ inlineSize: `${percent}%` }}></span></span> ${whole(percent)} %</span>`);
