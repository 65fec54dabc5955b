// The vitals over time: a chart for each value with bands for the thresholds and marks for alerts, and the values in a table.
import { getAll, get } from "../../api.js";
import { display } from "../../session.js";
import { Badge } from "../../ui/badge.js";
import { boundsOf, boundText, isSet } from "../../ui/bounds.js";
import { TimeChart } from "../../ui/chart.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { allDisplayed, displayed, inUnits, unitOf } from "../../ui/units.js";
import { isCounted, kindNames, readingText, values } from "../../ui/vitals.js";
import { ZoneNote } from "../../ui/time.js";
import { html, useEffect, useMemo, useState } from "../../view.js";
import { daysAgoIn, mergeReadings, periods, seconds, isSuspect } from "./reading_periods.js";

/** @typedef {import("./reading_periods.js").Observation} Observation */
/** @typedef {import("../../ui/vitals.js").Value} Value */

/** The bands of the bounds. @param {any} b @returns {import("../../ui/chart.js").Band[]} */
function bandsOf(b) {
  if (!b) {
    return [];
  }
  return [
    isSet(b.critical) && { from: b.critical, tone: "--band-critical" },
    isSet(b.high) && { from: b.high, to: isSet(b.critical) ? b.critical : undefined, tone: "--band-warning" },
    isSet(b.low) && { from: isSet(b.critical_low) ? b.critical_low : undefined, to: b.low, tone: "--band-warning" },
    isSet(b.critical_low) && { to: b.critical_low, tone: "--band-critical" },
  ].filter((band) => band !== false);
}

const titleOf = (/** @type {Value} */ value) => value.title ?? value.name;

/** The chart data of a value: suspect values are marked, outside the line. @param {Value} value @param {Observation[]} observations
 *  oldest first  @param {any} thresholds */
function chartData(value, observations, thresholds) {
  const mine = observations.filter((o) => typeof o[value.field] === "number");
  const bounds = allDisplayed(boundsOf(value, thresholds), value.unit) ?? null;
  const read = (/** @type {any} */ o) => displayed(o[value.field], value.unit);
  const doubts = mine.filter(isSuspect).map((o) => ({ at: seconds(o), value: read(o), text: "suspect", tone: "--unsure",
    shape: /** @type {const} */ ("question") }));
  const marks = mine.filter((o) => o.alert_details && breaches(o, value, bounds)).map((o) => ({
    at: seconds(o), value: read(o), text: inUnits(o.alert_details?.message), tone: `--${o.alert_details?.level}`,
    shape: /** @type {"triangle" | "diamond"} */ (o.alert_details?.level === "critical" ? "triangle" : "diamond"),
  }));
  return { times: mine.map(seconds), lines: [{ label: titleOf(value), values: mine.map((o) => (isCounted(o) ? read(o) : null)),
    tone: value.tone }],
    bands: bandsOf(bounds), marks: [...marks, ...doubts], bounds, doubted: doubts.length };
}

/** Whether a reading's alert is about this value. @param {Observation} o @param {Value} value @param {any} bounds */
const breaches = (o, value, bounds) => new RegExp(value.alert ?? value.name, "i").test(o.alert_details?.message ?? "") || !bounds;

/** @param {{id: string, turn?: number, thresholds: boolean, zone?: string}} props turn counts changes to the patient and loads the newest
 *  readings. zone is the patient's, otherwise the reader's */
export function Vitals({ id, turn = 0, thresholds, zone }) {
  const [days, setDays] = useState(30);
  const readings = useLoad(async () => (await getAll("ingestion/observations/", { patient_id: id, date_from: daysAgoIn(zone, days) },
    2000)).reverse(), [id, days]);
  const bounds = useLoad((signal) => (thresholds ? get(`patients/${id}/vital-config/`, {}, signal) : Promise.resolve(null)),
    [id, turn, thresholds]);
  useEffect(() => {
    if (turn > 0) {
      get("ingestion/observations/", { patient_id: id, date_from: daysAgoIn(zone, days), page_size: 50 }).then(({ results }) =>
        readings.change((before) => mergeReadings(before, results)), readings.reload);
    }
  }, [turn]);
  return html`<section aria-labelledby="vitals">
    <div class="heading"><h2 id="vitals">Vitals over time</h2>
      <div class="choices no-print" role="group" aria-label="Time span">${periods.map((n) => html`<button key=${n} aria-pressed=${n === days
        ? "true" : "false"} onClick=${() => setDays(n)}>${n} days</button>`)}</div>
    </div>
    <${Loaded} from=${readings} empty=${(data) => data.length === 0} nothing=${html`<${EmptyState} title=${`No readings in ${days} days`}>
      Choose a longer period above.</${EmptyState}>`}>
      ${(data) => html`<${Panels} observations=${data} thresholds=${bounds.data} zone=${zone} />`}
    </${Loaded}>
  </section>`;
}

/** @param {{observations: Observation[], thresholds: any, zone?: string}} props */
function Panels({ observations, thresholds, zone }) {
  const final = useMemo(() => observations.filter(({ status }) => status === "final"), [observations]);
  const panels = useMemo(() => values.map((value) => ({ value, ...chartData(value, final, thresholds) })).filter(({ times }) =>
    times.length > 0),
    [final, thresholds, display.value]);
  return html`<div class="panels">${panels.map(({ value, times, lines, bands, marks, bounds, doubted }) =>
    html`<div class="card" key=${value.field}>
      <${TimeChart} title=${`${titleOf(value)}, ${unitOf(value.unit)}`} times=${times} lines=${lines} bands=${bands} marks=${marks}
        height=${190} group="vitals" zone=${zone} gaps />
      <small class="legend">${[boundText(bounds, unitOf(value.unit)), marks.length > doubted && "▲ critical alert, ◆ warning", doubted > 0
        && "? suspect, not on the line"].filter(Boolean).join(" · ")}</small>
    </div>`)}</div>
    <${ZoneNote} of=${zone} owner=${zone && "the patient’s"} />
    <details class="card"><summary>Table of values</summary>
      <${Table} zone=${false} caption="Values, newest first" rows=${[...final].reverse()} columns=${[
        { name: "measured_at", head: "Measured", cell: (o) => dateTime(o.measured_at, zone) },
        { name: "kind", head: "Kind", cell: (o) => kindNames[o.observation_type] },
        { name: "reading", head: "Reading", cell: (o) => html`${readingText(o)}${isSuspect(o) && html` <${Badge} of="suspect" />`}` },
        { name: "alert", head: "Alert", cell: (o) =>
          (o.alert_details ? html`<${Badge} of=${o.alert_details.level} /> ${inUnits(o.alert_details.message)}` : "–") },
      ]} />
    </details>`;
}
