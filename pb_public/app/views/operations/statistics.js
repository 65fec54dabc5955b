// Statistics of the practice over time, and recent activity.
import { get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { TimeChart } from "../../ui/chart.js";
import { ago, dateTime, money, number, humanize } from "../../ui/format.js";
import { asProblem, Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { kindNames } from "../../ui/vitals.js";
import { ZoneNote } from "../../ui/time.js";
import { html, useMemo, useState } from "../../view.js";
import { Figures } from "../reports/body.js";

export function Statistics() {
  const figures = useLoad((signal) => get("dashboard/stats/", {}, signal), []);
  const received = useLoad((signal) => get("dashboard/stats/transmissions/", {}, signal), []);
  const volume = useLoad((signal) => get("dashboard/stats/volume/", {}, signal), []);
  const processing = useLoad((signal) => get("dashboard/stats/processing/", {}, signal), []);
  return html`<${Loaded} from=${figures}>${(d) => html`<${Figures} of=${shown(d)} />
      <p class="soft">${d.scope === "mine" ? "Your care teams’ patients." : "The whole practice."} As of ${dateTime(d.last_updated)}.
        </p>`}</${Loaded}>
    <div class="split"><div>
      <div class="card"><${Loaded} from=${received}>${(d) => html`<${Received} rows=${d.results} />`}</${Loaded}></div>
      <div class="card"><${Loaded} from=${volume}>${(d) => html`<${Volume} rows=${d.results} />`}</${Loaded}></div>
      <div class="card"><${Loaded} from=${processing}>${(d) => html`<${Processing} rows=${d.results} />`}</${Loaded}></div></div>
      <section class="card"><h2>Recent activity</h2><${Feed} /></section>
    </div>`;
}

/** Figures that the role may not see are null. @param {any} d @returns {[string, any][]} */
function shown(d) {
  const all = /** @type {[string, any][]} */ ([
    ["Patients monitored", number(d.patients_monitored)],
    ["Open alerts", d.vital_alerts === null ? null : number(d.vital_alerts)],
    ["Transmission rate today", html`${number(d.transmission_rate)} %<small>${d.received_today} of ${d.expected_today} readings</small>`],
    ["Compliance", html`${number(d.compliance_rate)} %<small>16 or more days of 30${d.patients_needing_thresholds > 0
      ? `; ${d.patients_needing_thresholds} need thresholds` : ""}</small>`],
    ["Templates to decide on", html`${number(d.undecided_templates)}${d.undecided_templates_overdue > 0
      && html`<small>${d.undecided_templates_overdue} for more than 24 hours</small>`}`],
    ["Processing time", `${number(d.avg_processing_time_ms)} ms`],
    ["Revenue this month", d.monthly_revenue === null ? null : money(d.monthly_revenue)],
  ]);
  return all.filter(([, value]) => value !== null);
}

/** @param {string} date */
const seconds = (date) => Date.parse(date.length === 10 ? `${date}T00:00:00Z` : date) / 1000;

/** @param {{rows: any[]}} props */
function Received({ rows }) {
  const { times, lines } = useMemo(() => ({
    times: rows.map((row) => seconds(row.date)),
    lines: [{ label: "Received", values: rows.map((row) => row.received), bars: true },
      { label: "Expected", values: rows.map((row) => row.expected), tone: "--series-2", points: false }],
  }), [rows]);
  return html`<${TimeChart} title="Readings received and expected, 30 days" times=${times} lines=${lines} least=${0} dates />`;
}

const lineOf = (/** @type {string} */ kind, /** @type {number} */ at) => ({ kind, label: kindNames[kind], tone: `--series-${at % 4 + 1}` });

/** @param {{rows: any[]}} props */
function Volume({ rows }) {
  const { times, lines } = useMemo(() => ({
    times: rows.map((row) => seconds(row.date)),
    lines: Object.keys(kindNames).map(lineOf).map(({ kind, ...line }) =>
      ({ ...line, values: rows.map((row) => row[kind]), points: false })),
  }), [rows]);
  return html`<${TimeChart} title="Readings by kind, 90 days" times=${times} lines=${lines} least=${0} dates />`;
}

/** @param {{rows: any[]}} props */
function Processing({ rows }) {
  const { times, lines } = useMemo(() => ({
    times: rows.map((row) => seconds(row.timestamp)),
    lines: [{ label: "Mean", values: rows.map((row) => row.avg_ms), points: false }, { label: "95th percentile", tone: "--series-2",
      values: rows.map((row) => row.p95_ms), points: false }],
  }), [rows]);
  return html`<${TimeChart} title="Processing time, 24 hours" times=${times} lines=${lines} unit="ms" least=${0} /><${ZoneNote} />`;
}

function Feed() {
  const feed = useLoad((signal) => get("dashboard/activity/", { limit: 15 }, signal), []);
  const [isBusy, setBusy] = useState(false);
  const more = async () => {
    setBusy(true);
    try {
      const answer = await get("dashboard/activity/", { limit: 15, cursor: feed.data.next_cursor });
      feed.change((data) => ({ ...answer, results: [...data.results, ...answer.results] }));
    } catch (error) {
      toast(asProblem(error).message, "problem");
    } finally {
      setBusy(false);
    }
  };
  return html`<${Loaded} from=${feed} empty=${(d) => d.results.length === 0} nothing=${html`<${EmptyState}
    title="No activity yet" />`}>${(d) =>
    html`
    <ul class="feed">${d.results.map((one) => html`<li key=${one.id}><${Badge} of=${one.severity === "success" ? "succeeded"
      : one.severity} text=${humanize(one.severity)} />
      <div>${one.message}<small>${ago(one.timestamp)}${one.user ? `, ${one.user}` : ""}</small></div></li>`)}</ul>
    ${d.next_cursor && html`<div class="actions"><button disabled=${isBusy} onClick=${more}>Earlier</button></div>`}`}
  </${Loaded}>`;
}
