// Deliveries to the EMR: the queue's state, each delivery with its attempts, and retries.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime, fullTime, number, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Facts, List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { contentOf } from "./content.js";
import { useQuery } from "../../query.js";
import { html, useState } from "../../view.js";
import { errors, Requeue } from "./requeue.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Transmission"]} Transmission */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["FHIRStatus"]} Status */

const givenUp = "given_up"; // not a status of the API: failed and not retried
const states = /** @type {[string, string][]} */ ([["", "All"], ["pending", "Pending"], ["processing", "In progress"],
  ["transmitted", "Delivered"], ["failed", "Failed"], [givenUp, "Not retried"]]);
/** @param {string} state */
const stateName = (state) => states.find(([code]) => code === state)?.[1] ?? humanize(state);

/** The state of a delivery; one that waits for the patient's link does not wait for the EMR. @param {any} row */
const stateText = (row) => (row.given_up ? "Not retried" : row.waits_for === "link" ? "Patient not linked" : stateName(row.status));

export function Transmissions() {
  const [filters, setFilters] = useQuery({ status: "", error_code: "", date_from: "", date_to: "" });
  const [revision, setRevision] = useState(0);
  const [open, setOpen] = useState(/** @type {Transmission | null} */ (null));
  const changed = () => setRevision(revision + 1);
  const [filterVersion, setFilterVersion] = useState(0); // renders the filters again, including the dates
  const showGivenUp = () => { setFilters({ status: givenUp, error_code: "", date_from: "", date_to: "" });
    setFilterVersion(filterVersion + 1); };
  const query = filters.status === givenUp ? { ...filters, status: "", given_up: "true" } : filters;
  return html`<${QueueStatus} turn=${revision} changed=${changed} showGivenUp=${showGivenUp} />
    <div class="filters" key=${filterVersion} role="search" aria-label="Filter the deliveries">
      <${Field} label="State" name="status" kind="select" value=${filters.status} options=${states} onChange=${(event) =>
        setFilters({ status: event.target.value })} />
      <${Field} label="Error" name="error_code" kind="select" value=${filters.error_code} options=${errors} onChange=${(event) =>
        setFilters({ error_code: event.target.value })} />
      <${Field} label="From" name="date_from" kind="date" value=${filters.date_from} onChange=${(event) =>
        setFilters({ date_from: event.target.value })} />
      <${Field} label="To" name="date_to" kind="date" value=${filters.date_to} onChange=${(event) =>
        setFilters({ date_to: event.target.value })} />
      <button onClick=${changed}>Refresh</button>
      ${can("requeue") && ["", "failed", givenUp].includes(filters.status)
        && html`<${Requeue} filters=${filters} turn=${revision} changed=${changed} />`}
    </div>
    <${List} name="" path="fhir/transmissions/" query=${query} turn=${revision} caption="Deliveries, newest first"
      nothing="No deliveries match"
      open=${setOpen} columns=${columns} />
    ${open && html`<${Detail} id=${open.id} close=${() => setOpen(null)} changed=${changed} />`}`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "id", head: "Delivery" }, { name: "patient_name", head: "Patient" },
  { name: "observation_type", head: "Content", cell: (row) => (row.form === "reading" ? contentOf(row) : humanize(row.form)) },
  { name: "status", head: "State", cell: (row) => html`<${Badge} of=${row.status} text=${stateText(row)} />` },
  { name: "attempt_count", head: "Retries", number: true, cell: (row) => `${row.attempt_count} of ${row.max_attempts}` },
  { name: "error_message", head: "Error", cell: (row) => row.error_message ?? "" },
  { name: "next_retry_at", head: "Next attempt", cell: (row) => (row.next_retry_at ? dateTime(row.next_retry_at) : "") },
  { name: "created_at", head: "Created", cell: (row) => dateTime(row.created_at) },
];

/** @param {{turn: number, changed: () => void, showGivenUp: () => void}} props */
function QueueStatus({ turn, changed, showGivenUp }) {
  const status = useLoad((signal) => get("fhir/status/", {}, signal), [turn]);
  const showResult = (/** @type {any} */ answer) => {
    const tried = `${answer.processed} tried: ${answer.succeeded} delivered, ${answer.failed} failed.`;
    toast(answer.skipped
      ? `${tried} ${number(answer.skipped)} not tried: they are waiting for the EMR or for a patient to be linked.` : tried,
      answer.failed || answer.skipped ? "problem" : "done");
    changed();
  };
  return html`<${Loaded} from=${status}>${(/** @type {Status} */ s) => html`
    <div class="bar-of-acts"><p><${Badge} of=${s.status} /> <${Badge} of=${s.emr_connection} text=${`EMR: ${connectionText(s)}`} /></p>
      ${can("processPending") && html`<${ActionButton} act=${() => post("fhir/process-pending/")} done=${showResult}>Send due deliveries now
        </${ActionButton}>`}</div>
    <dl class="figures">
      ${figure("Not retried", number(s.queue.given_up))} ${figure("Pending", number(s.queue.pending))} ${figure("In progress",
        number(s.queue.processing))} ${figure("Will retry", number(s.queue.failed_awaiting_retry))}
      ${figure("Not linked", number(s.queue.unlinked))} ${figure("Corrections", number(s.queue.corrections_due))}
      ${figure("Delivered today", number(s.today_stats.transmitted))} ${figure("Failed today",
        number(s.today_stats.failed))} ${figure("Success today", `${s.today_stats.success_rate} %`)}
      ${figure("Uptime, 30 days", s.uptime)} ${figure("Last delivery", ago(s.emr_last_successful_transmission))}
    </dl>
    ${s.queue.given_up > 0 && html`<p class="notice warning" role="status">${s.queue.given_up === 1 ? "1 delivery is"
      : `${number(s.queue.given_up)} deliveries are`} not retried automatically.
      Open a delivery to see how to fix it. <button class="quiet" onClick=${showGivenUp}>Show these deliveries</button></p>`}`}
        </${Loaded}>`;
}

/** The state of the connection to the EMR. @param {Status} s */
const connectionText = (s) => (s.emr_away_since ? `unavailable since ${dateTime(s.emr_away_since)}`
  : s.emr_connection === "disconnected" ? "unavailable"
  : humanize(s.emr_connection).toLowerCase());

/** @param {string} name @param {any} value */
const figure = (name, value) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`;

/** @param {{id: string, close: () => void, changed: () => void}} props */
function Detail({ id, close, changed }) {
  const delivery = useLoad((signal) => get(`fhir/transmissions/${id}/`, {}, signal), [id]);
  return html`<${Dialog} wide title=${id} close=${close}><${Loaded} from=${delivery}>${(data) => html`
    <${Facts} of=${[["Patient", html`<button class="link" onClick=${() => go("patient", { id: data.patient_id })}>${data.patient_name}
      </button>`], ["Content", contentOf(data)],
      ["State", html`<${Badge} of=${data.status} text=${stateText(data)} />`], ["Error", data.error_message],
      ...(data.remedy ? [["What to do", data.remedy.text]] : []), ...(data.diagnostics ? [["EMR error message", data.diagnostics]] : []),
      ["Next attempt", data.next_retry_at ? fullTime(data.next_retry_at) : data.given_up ? "None scheduled" : "–"]]} />
    <h3>Attempts</h3>
    ${data.attempts.length === 0 ? html`<${EmptyState} title="Not sent yet" />`
      : html`<${Table} caption="Attempts, oldest first" rows=${data.attempts} keyOf=${(row) => row.request_id}
      columns=${attemptColumns} />`}
    ${can("transmit") && data.error_code === "outcome_unknown" && html`<${Resolve} id=${id} done=${() => { close(); changed(); }} />`}
    ${can("transmit") && data.status === "failed" && (data.observation_id || data.error_code !== "outcome_unknown")
      && html`<div class="actions"><${ActionButton} kind="main" act=${() => post(data.observation_id
        ? `fhir/observations/${data.observation_id}/transmit/` : `fhir/transmissions/${id}/retry/`)}
      doneText="Sending." done=${() => { close(); changed(); }}>Try again now</${ActionButton}></div>`}`}
  </${Loaded}></${Dialog}>`;
}

/** States whether the chart has a reading or report. @param {{id: string, done: () => void}} props */
const Resolve = ({ id, done }) => html`<h3>Is it in the chart?</h3>
  <${Form} submit="Save" send=${(values) => post(`fhir/transmissions/${id}/resolve/`, values)}
    done=${() => { toast("Saved."); done(); }}>${(errors) => html`
    <${Field} label="Answer" name="outcome" kind="select" errors=${errors} options=${[
      ["present", "It is in the chart"], ["absent", "It is not there: send it again"]]} />
    <${Field} label="Notes" name="notes" maxlength="500" hint="Where you looked." errors=${errors} />`}
  </${Form}>`;

/** @type {import("../../ui/table.js").Column[]} */
const attemptColumns = [
  { name: "started_at", head: "When", cell: (row) => fullTime(row.started_at) },
  { name: "status", head: "Response", cell: (row) => row.status ?? "None" },
  { name: "error_code", head: "Error", cell: (row) => row.error_code ?? "" },
  { name: "duration_ms", head: "Duration", number: true, cell: (row) => `${number(row.duration_ms)} ms` },
  { name: "request_id", head: "Request", cell: (row) => html`<span class="hash">${row.request_id}</span>` },
];
