// The panel's chart: the concerning value over the last weeks, with its normal range and marks for alerts.
import { getAll, get } from "../../api.js";
import { TimeChart } from "../../ui/chart.js";
import { useLoad } from "../../ui/states.js";
import { allDisplayed, displayed, unitOf } from "../../ui/units.js";
import { isCounted, kindNames, vitals } from "../../ui/vitals.js";
import { daysAgo } from "../../ui/time.js";
import { html, useMemo, useState } from "../../view.js";

/** @typedef {import("./order.js").Row} Row */

const spans = [14, 30, 90];
/** @type {any[]} */
const none = [];

/** The charted kind of reading: that of the concern, otherwise the newest. @param {Row} row */
function kindOf(row) {
  const parameter = row.concern?.parameter;
  const mine = Object.entries(vitals).filter(([, { values }]) => values.some(({ field }) => field === parameter)).map(([kind]) => kind);
  return mine.find((kind) => kind in row.latest_vitals) ?? mine[0] ??
    Object.entries(row.latest_vitals).sort(([, a], [, b]) => (a.measured_at < b.measured_at ? 1 : -1))[0]?.[0] ?? "";
}

/** @param {{row: Row}} props */
export function HistoryChart({ row }) {
  const [days, setDays] = useState(14);
  const id = row.patient_id;
  const kind = kindOf(row);
  const readings = useLoad(async (signal) => {
    await new Promise((go, stop) => { setTimeout(go, 150); signal.addEventListener("abort", () => stop(signal.reason)); });
    return kind ? (await getAll("ingestion/observations/", { patient_id: id, observation_type: kind, date_from: daysAgo(days) },
      600)).reverse() : [];
  }, [id, kind, days, row.last_reading_at]);
  const bounds = useLoad((signal) => get(`patients/${id}/vital-config/`, {}, signal), [id]);
  const drawn = useMemo(() => chartData(kind, (readings.data ?? []).filter(isCounted), bounds.data, row),
    [readings.data, bounds.data, kind]);
  return html`<section class="past"><div class="heading"><h3>${kindNames[kind] ?? "Readings"}${drawn.unit && `, ${drawn.unit}`}</h3>
      <div class="choices" role="group" aria-label="Time span">${spans.map((n) =>
        html`<button key=${n} aria-pressed=${n === days ? "true" : "false"} onClick=${() => setDays(n)}>
        ${n === 14 ? "14 days" : n}</button>`)}</div></div>
    <div class="room">${drawn.times.length > 0 ? html`<${TimeChart} title=${`${kindNames[kind]}, ${days} days`} times=${drawn.times}
      lines=${drawn.lines} bands=${drawn.bands} marks=${drawn.marks} height=${190} />`
      : html`<p class="hint">${readings.data === null ? "" : `No readings in ${days} days.`}</p>`}</div>
    <p class="hint">${drawn.times.length > 0 ? drawn.words : "\u00a0"}</p></section>`;
}

/** @param {string} kind @param {any[]} observations @param {any} config @param {Row} row */
function chartData(kind, observations, config, row) {
  const values = vitals[kind]?.values.filter((value) => value.group === kind || value.field === row.concern?.parameter) ?? none;
  const mine = observations.filter((o) => values.some(({ field }) => typeof o[field] === "number"));
  const set = (/** @type {any} */ value) => /** @type {any} */ (value.changes ? row.concern?.bounds
    : Object.fromEntries(["low", "high"].map((side) => [side, config?.[value.group]?.[`${value.prefix ?? ""}${side}`] ?? null])));
  const bands = values.map((value) => ({ ...allDisplayed(set(value), value.unit), tone: "--band-range" }))
    .filter(({ low, high }) => typeof low === "number" || typeof high === "number")
    .map(({ low, high, tone }) => ({ from: low ?? undefined, to: high ?? undefined, tone }));
  const at = (/** @type {any} */ o) => Date.parse(o.measured_at) / 1000;
  const marks = mine.filter((o) => ["critical", "warning"].includes(o.alert_details?.level)).flatMap((o) =>
    values.slice(0, 1).map(({ field, unit }) => ({
    at: at(o), value: displayed(o[field], unit), text: "",
      tone: o.alert_details.level === "critical" ? "--mark-critical" : "--mark-warning",
    shape: /** @type {"triangle" | "diamond"} */ (o.alert_details.level === "critical" ? "triangle" : "diamond"),
  })));
  const week = mine.filter((o) => at(o) > Date.now() / 1000 - 7 * 86_400);
  const mean = values.map(({ field, unit }) => week.reduce((sum, o) => sum + displayed(o[field], unit), 0) / week.length);
  return {
    times: mine.map(at), bands, marks,
    lines: values.map(({ field, title, name, tone, unit }) =>
      ({ label: title ?? name, values: mine.map((o) => displayed(o[field], unit) ?? null), tone })),
    unit: unitOf(values[0]?.unit ?? ""),
    words: [bands.length > 0 && "Shaded: in range.", week.length > 0 && mean.every(Number.isFinite)
      && `7-day mean ${mean.map((n) => (kind === "blood_pressure" ? n.toFixed(0) : String(Math.round(n * 10) / 10)))
      .join("/")}.`].filter(Boolean).join(" "),
  };
}
