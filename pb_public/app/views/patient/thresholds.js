// The thresholds of a patient, with a preview of the alerts that changed limits would have raised in the last ninety days. Nothing changes
// until it is saved with a reason.
import { get, post, put } from "../../api.js";
import { can } from "../../permissions.js";
import { Field, Form, valuesOf } from "../../ui/form.js";
import { calendarDate, dateTime, humanize } from "../../ui/format.js";
import { TimeChart } from "../../ui/chart.js";
import { Failed, Loaded, useLoad, Waiting } from "../../ui/states.js";
import { List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { kindNames } from "../../ui/vitals.js";
import { html, useEffect, useMemo, useRef, useState } from "../../view.js";
import { Templates } from "./templates.js";
import { changesOf, ThresholdGrid } from "./threshold_grid.js";

/** @param {{id: string, turn: number, changed: () => void}} props */
export function Thresholds({ id, turn, changed }) {
  const bounds = useLoad((signal) => get(`patients/${id}/vital-config/`, {}, signal), [id]);
  const [proposal, setProposal] = useState({});
  return html`<section aria-labelledby="thresholds">
    <div class="heading"><h2 id="thresholds">Thresholds</h2></div>
    <${Loaded} from=${bounds}>${(data) => html`<div class="split">
      <div class="card"><${BoundsForm} key=${data.updated_at} id=${id} bounds=${data} propose=${setProposal}
        done=${() => { setProposal({}); bounds.reload(); changed(); }} /></div>
      <${Preview} id=${id} proposal=${proposal} />
    </div>
    <${Templates} id=${id} applied=${data.templates ?? []} done=${() => { setProposal({}); bounds.reload(); changed(); }} />`}</${Loaded}>
    <div class="card"><h3>Change history</h3>
      <${List} path="threshold-changes/" query=${{ patient_id: id }} turn=${turn} size=${10} caption="Threshold changes"
        nothing="Never changed: using practice defaults" columns=${[
        { name: "changed_at", head: "When", cell: (c) => dateTime(c.changed_at) }, { name: "field", head: "Limit", cell: (c) =>
          humanize(c.field) },
        { name: "change", head: "Change", cell: (c) => `${c.old_value ?? "none"} → ${c.new_value ?? "none"}` },
        { name: "changed_by", head: "By" }, { name: "reason", head: "Reason" },
      ]} />
    </div>
  </section>`;
}

/** @param {{id: string, bounds: any, propose: (body: any) => void, done: () => void}} props */
function BoundsForm({ id, bounds, propose, done }) {
  const wait = useRef(0);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const defaults = useLoad((signal) => (can("readDefaults") ? get("settings/default-thresholds/", {}, signal)
    : Promise.resolve(bounds)), []);
  const updatePreview = () => {
    clearTimeout(wait.current);
    wait.current = setTimeout(() => {
      const form = box.current?.querySelector("form");
      if (form) {
        propose(changesOf(bounds, valuesOf(form)));
      }
    }, 700);
  };
  useEffect(() => () => clearTimeout(wait.current), []);
  const mayChange = can("changeThresholds");
  const send = (/** @type {any} */ values) => put(`patients/${id}/vital-config/`, { ...changesOf(bounds, values),
    reason: values.reason ?? "" });
  const grid = (/** @type {Record<string, string[]>} */ errors) => html`<${ThresholdGrid} now=${bounds} defaults=${defaults.data ?? bounds}
    disabled=${!mayChange} errors=${errors} changed=${updatePreview}
    provisional=${(bounds.provisional ?? []).map((/** @type {any} */ bound) => bound.field)} />`;
  return html`<div ref=${box}>
    <p class="hint">${bounds.is_default ? "Using practice defaults."
      : `Set for this patient on ${dateTime(bounds.updated_at)} by ${bounds.updated_by}. Bold: not the practice’s limit.`} No alert for
      empty limits.</p>
    ${mayChange ? html`<${Form} submit="Save thresholds" send=${send} done=${() => { toast("Thresholds saved."); done(); }}
      foot=${(errors) => html`<${Field} label="Reason for change" name="reason" kind="textarea" rows="1" errors=${errors} />`}>
      ${grid}</${Form}>` : grid({})}
  </div>`;
}

/** @param {{id: string, proposal: any}} props */
function Preview({ id, proposal }) {
  const hasProposal = Object.keys(proposal).length > 0 && can("changeThresholds");
  const text = JSON.stringify(proposal);
  const answer = useLoad(() => (hasProposal ? post("triage/simulate-thresholds/", { patient_id: id, ...proposal }) : Promise.resolve(null)),
    [id, text]);
  return html`<div class="card preview" aria-live="polite" aria-busy=${answer.loading ? "true" : "false"}>
    <h3>What if: the last 90 days</h3>
    ${!hasProposal ? html`<p>${can("changeThresholds") ? "Change a limit to preview its alerts."
      : "Your role can view thresholds but not change them."}</p>`
      : contradictions(answer.problem) ? html`<p class="notice warning">${contradictions(answer.problem)}</p>`
      : answer.problem ? html`<${Failed} problem=${answer.problem} retry=${answer.reload} />`
      : answer.data ? html`<${Outcome} of=${answer.data} />` : html`<${Waiting} />`}
  </div>`;
}

/** The contradictions in a proposal, if any. @param {import("../../api.js").Problem | null} problem */
const contradictions = (problem) => [...new Set(Object.values(problem?.fields ?? {}).flat())].join(" ");

/** @param {{of: any}} props */
function Outcome({ of }) {
  const days = useMemo(() => of.per_day.filter((day) => day.actual.total + day.simulated.total > 0), [of]);
  const times = useMemo(() => of.per_day.map((day) => Date.parse(`${day.date}T00:00:00Z`) / 1000), [of]);
  const lines = useMemo(() => [
    { label: "Raised", values: of.per_day.map((day) => day.actual.total), tone: "--series-1", points: false },
    { label: "With these limits", values: of.per_day.map((day) => day.simulated.total), tone: "--series-2", points: false },
  ], [of]);
  const difference = of.simulated.total - of.actual.total;
  return html`
    <p class="verdict"><strong>${of.actual.total} → ${of.simulated.total} alerts</strong> ${difference === 0 ? "no difference"
      : `${Math.abs(difference)} ${difference < 0 ? "fewer" : "more"}`}, from ${of.readings} readings</p>
    <${Table} caption="Alerts by level" keyOf=${(row) => row.level} rows=${["critical", "warning"].map((level) =>
      ({ level, actual: of.actual[level], simulated: of.simulated[level] }))} columns=${[
      { name: "level", head: "Level", cell: (row) => humanize(row.level) }, { name: "actual", head: "Raised", number: true },
      { name: "simulated", head: "With these limits", number: true },
    ]} />
    ${of.missed_critical.count > 0
      && html`<div class="notice problem" role="alert"><strong>${of.missed_critical.count} critical ${of.missed_critical.count === 1
      ? "alert" : "alerts"} would have been missed:</strong>
      <ul>${of.missed_critical.readings.slice(0, 5).map((r) => html`<li
        key=${r.observation_id}>${dateTime(r.measured_at)}: ${kindNames[r.type]
        ?? humanize(r.type)} ${r.value}, now ${r.simulated_level ?? "no alert"}</li>`)}</ul></div>`}
    ${days.length > 0 && html`<${TimeChart} title="Alerts a day" times=${times} lines=${lines} height=${150} least=${0} dates />
      <details><summary>Table by day</summary><${Table} caption="Alerts a day" keyOf=${(day) => day.date} rows=${days} columns=${[
        { name: "date", head: "Day", cell: (day) => calendarDate(day.date) }, { name: "actual", head: "Raised", number: true, cell: (day) =>
          day.actual.total },
        { name: "simulated", head: "With these limits", number: true, cell: (day) => day.simulated.total }]} /></details>`}
    ${!of.complete && html`<p class="notice warning">Preview is incomplete: not all readings could be evaluated in time.</p>`}`;
}
