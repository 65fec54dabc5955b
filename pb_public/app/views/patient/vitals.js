// What was measured, over time: one panel for each value with the bounds in force as bands and a sign where an alert was
// raised; the numbers stand in a table behind.
import { all, get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { TimeChart } from "../../ui/chart.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, Nothing, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { counts, kinds, reading, values } from "../../ui/vitals.js";
import { daysAgo } from "../../ui/when.js";
import { html, useEffect, useMemo, useState } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["Observation"]} Observation */
/** @typedef {import("../../ui/vitals.js").Value} Value */

/** The bounds of one value out of its group; none where changes are watched. @param {Value} value @param {any} thresholds */
function boundsOf({ group, prefix = "", changes }, thresholds) {
  const set = changes ? null : thresholds[group];
  return set && Object.fromEntries(Object.entries(set).filter(([name]) => name.startsWith(prefix)).map(([name, bound]) => [name.slice(prefix.length), bound]));
}

const known = (/** @type {any} */ bound) => typeof bound === "number";

/** The values that bounds cover. @param {any} b @returns {import("../../ui/chart.js").Band[]} */
function bandsOf(b) {
  if (!b) {
    return [];
  }
  return [
    known(b.critical) && { from: b.critical, tone: "--band-critical" },
    known(b.high) && { from: b.high, to: known(b.critical) ? b.critical : undefined, tone: "--band-warning" },
    known(b.low) && { from: known(b.critical_low) ? b.critical_low : undefined, to: b.low, tone: "--band-warning" },
    known(b.critical_low) && { to: b.critical_low, tone: "--band-critical" },
  ].filter((band) => band !== false);
}

const words = (/** @type {any} */ b, /** @type {string} */ unit) => [
  known(b?.critical_low) && `critical at ${b.critical_low} or below`, known(b?.low) && `warning at ${b.low} or below`,
  known(b?.high) && `warning from ${b.high}`, known(b?.critical) && `critical from ${b.critical}`,
].filter(Boolean).join(", ") + (b ? ` ${unit}` : "");

const seconds = (/** @type {Observation} */ o) => Date.parse(o.measured_at) / 1000;

const titleOf = (/** @type {Value} */ value) => value.title ?? value.name;

/** What a panel draws. @param {Value} value @param {Observation[]} observations oldest first @param {any} thresholds */
function drawn(value, observations, thresholds) {
  const mine = observations.filter((o) => typeof o[value.field] === "number");
  const bounds = thresholds ? boundsOf(value, thresholds) : null;
  const marks = mine.filter((o) => o.alert_details && breaches(o, value, bounds)).map((o) => ({
    at: seconds(o), value: o[value.field], text: o.alert_details?.message ?? "", tone: `--${o.alert_details?.level}`,
    shape: /** @type {"triangle" | "diamond"} */ (o.alert_details?.level === "critical" ? "triangle" : "diamond"),
  }));
  return { times: mine.map(seconds), lines: [{ label: titleOf(value), values: mine.map((o) => o[value.field]), tone: value.tone }], bands: bandsOf(bounds), marks, bounds };
}

/** An alert of a reading is marked at the values that it names. @param {Observation} o @param {Value} value @param {any} bounds */
const breaches = (o, value, bounds) => new RegExp(value.alert ?? value.name, "i").test(o.alert_details?.message ?? "") || !bounds;

/** Readings with the newest among them anew, oldest first. @param {Observation[]} before @param {Observation[]} newest */
function merged(before, newest) {
  const anew = new Set(newest.map(({ id }) => id));
  return [...before.filter(({ id }) => !anew.has(id)), ...newest].sort((a, b) => seconds(a) - seconds(b));
}

const spans = [7, 30, 90];

/** @param {{id: string, turn?: number, thresholds: boolean}} props turn counts what happened; a new one fetches the newest */
export function Vitals({ id, turn = 0, thresholds }) {
  const [days, look] = useState(30);
  const readings = useLoad(async () => (await all("ingestion/observations/", { patient_id: id, date_from: daysAgo(days) }, 2000)).reverse(), [id, days]);
  const bounds = useLoad((signal) => (thresholds ? get(`patients/${id}/vital-config/`, {}, signal) : Promise.resolve(null)), [id, turn, thresholds]);
  useEffect(() => {
    if (turn > 0) {
      get("ingestion/observations/", { patient_id: id, date_from: daysAgo(days), page_size: 50 }).then(({ results }) => readings.change((before) => merged(before, results)), readings.reload);
    }
  }, [turn]);
  return html`<section aria-labelledby="vitals">
    <div class="heading"><h2 id="vitals">Vitals over time</h2>
      <div class="choices no-print" role="group" aria-label="Time span">${spans.map((n) => html`<button key=${n} aria-pressed=${n === days ? "true" : "false"} onClick=${() => look(n)}>${n} days</button>`)}</div>
    </div>
    <${Loaded} from=${readings} empty=${(data) => data.length === 0} nothing=${html`<${Nothing} title=${`No reading in ${days} days`}>Choose a longer time above.</${Nothing}>`}>
      ${(data) => html`<${Panels} observations=${data} thresholds=${bounds.data} />`}
    </${Loaded}>
  </section>`;
}

/** @param {{observations: Observation[], thresholds: any}} props */
function Panels({ observations, thresholds }) {
  const final = useMemo(() => observations.filter(counts), [observations]);
  const shown = useMemo(() => values.map((value) => ({ value, ...drawn(value, final, thresholds) })).filter(({ times }) => times.length > 0), [final, thresholds]);
  return html`<div class="panels">${shown.map(({ value, times, lines, bands, marks, bounds }) => html`<div class="card" key=${value.field}>
      <${TimeChart} title=${`${titleOf(value)}, ${value.unit}`} times=${times} lines=${lines} bands=${bands} marks=${marks} height=${190} group="vitals" />
      <small class="legend">${[words(bounds, value.unit), marks.length > 0 && "▲ critical alert, ◆ warning"].filter(Boolean).join(" · ")}</small>
    </div>`)}</div>
    <details class="card"><summary>The values as a table</summary>
      <${Table} caption="Values, newest first" rows=${[...final].reverse()} columns=${[
        { name: "measured_at", head: "Measured", cell: (o) => dateTime(o.measured_at) },
        { name: "kind", head: "Kind", cell: (o) => kinds[o.observation_type] },
        { name: "reading", head: "Reading", cell: (o) => reading(o) },
        { name: "alert", head: "Alert", cell: (o) => (o.alert_details ? html`<${Badge} of=${o.alert_details.level} /> ${o.alert_details.message}` : "–") },
      ]} />
    </details>`;
}
