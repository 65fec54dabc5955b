// What was delivered to the EMR: the state of the queue, every delivery with its attempts, and trying again.
import { get, post } from "../../api.js";
import { can } from "../../can.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field } from "../../ui/form.js";
import { ago, dateTime, fullTime, number, words } from "../../ui/format.js";
import { Loaded, Nothing, useLoad } from "../../ui/states.js";
import { Facts, List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { kinds } from "../../ui/vitals.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["Transmission"]} Transmission */
/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["FHIRStatus"]} Status */

const states = /** @type {[string, string][]} */ ([["", "All"], ["pending", "Waiting"], ["processing", "On the way"], ["transmitted", "Delivered"], ["failed", "Failed"]]);
/** @param {string} state */
const stateName = (state) => states.find(([code]) => code === state)?.[1] ?? words(state);

export function Transmissions() {
  const [filters, filter] = useState({ status: "", date_from: "", date_to: "" });
  const [turn, again] = useState(0);
  const [open, show] = useState(/** @type {Transmission | null} */ (null));
  const changed = () => again(turn + 1);
  const narrow = (/** @type {Partial<typeof filters>} */ change) => filter({ ...filters, ...change });
  return html`<${Standing} turn=${turn} changed=${changed} />
    <div class="filters" role="search" aria-label="Filter the deliveries">
      <${Field} label="State" name="status" kind="select" value=${filters.status} options=${states} onChange=${(event) => narrow({ status: event.target.value })} />
      <${Field} label="From" name="date_from" kind="date" onChange=${(event) => narrow({ date_from: event.target.value })} />
      <${Field} label="To" name="date_to" kind="date" onChange=${(event) => narrow({ date_to: event.target.value })} />
      <button onClick=${changed}>Fetch anew</button>
    </div>
    <${List} path="fhir/transmissions/" query=${filters} turn=${turn} caption="Deliveries, newest first" nothing="No delivery matches" open=${show} columns=${columns} />
    ${open && html`<${Detail} id=${open.id} close=${() => show(null)} changed=${changed} />`}`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "id", head: "Delivery" }, { name: "patient_name", head: "Patient" },
  { name: "observation_type", head: "Reading", cell: (row) => (row.form === "reading" ? kinds[row.observation_type] : words(row.form)) },
  { name: "status", head: "State", cell: (row) => html`<${Badge} of=${row.status} text=${row.status === "failed" && row.next_retry_at === null ? "Given up" : stateName(row.status)} />` },
  { name: "attempt_count", head: "Retries", number: true, cell: (row) => `${row.attempt_count} of ${row.max_attempts}` },
  { name: "error_message", head: "What went wrong", cell: (row) => row.error_message ?? "" },
  { name: "next_retry_at", head: "Next attempt", cell: (row) => (row.next_retry_at ? dateTime(row.next_retry_at) : "") },
  { name: "created_at", head: "Made", cell: (row) => dateTime(row.created_at) },
];

/** @param {{turn: number, changed: () => void}} props */
function Standing({ turn, changed }) {
  const status = useLoad((signal) => get("fhir/status/", {}, signal), [turn]);
  const said = (/** @type {any} */ answer) => {
    toast(answer.skipped ? `No EMR is configured; ${answer.skipped} wait.` : `${answer.processed} tried: ${answer.succeeded} delivered, ${answer.failed} failed.`, answer.failed ? "problem" : "done");
    changed();
  };
  return html`<${Loaded} from=${status}>${(/** @type {Status} */ s) => html`
    <div class="bar-of-acts"><p><${Badge} of=${s.status} /> <${Badge} of=${s.emr_connection} text=${`EMR: ${words(s.emr_connection).toLowerCase()}`} /></p>
      ${can("processPending") && html`<${ActionButton} act=${() => post("fhir/process-pending/")} done=${said}>Deliver what is due now</${ActionButton}>`}</div>
    <dl class="figures">
      ${figure("Waiting", number(s.queue.pending))} ${figure("On the way", number(s.queue.processing))} ${figure("To be tried again", number(s.queue.failed_awaiting_retry))}
      ${figure("Delivered today", number(s.today_stats.transmitted))} ${figure("Failed today", number(s.today_stats.failed))} ${figure("Success today", `${s.today_stats.success_rate} %`)}
      ${figure("Up in 30 days", s.uptime)} ${figure("Last delivery", ago(s.emr_last_successful_transmission))}
    </dl>`}</${Loaded}>`;
}

/** @param {string} name @param {any} value */
const figure = (name, value) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`;

/** @param {{id: string, close: () => void, changed: () => void}} props */
function Detail({ id, close, changed }) {
  const delivery = useLoad((signal) => get(`fhir/transmissions/${id}/`, {}, signal), [id]);
  return html`<${Dialog} wide title=${id} close=${close}><${Loaded} from=${delivery}>${(data) => html`
    <${Facts} of=${[["Patient", html`<button class="link" onClick=${() => go("patient", { id: data.patient_id })}>${data.patient_name}</button>`], ["Reading", kinds[data.observation_type]],
      ["State", html`<${Badge} of=${data.status} text=${stateName(data.status)} />`], ["What went wrong", data.error_message], ["Next attempt", data.next_retry_at ? fullTime(data.next_retry_at) : data.status === "failed" ? "None: given up" : "–"]]} />
    <h3>Attempts</h3>
    ${data.attempts.length === 0 ? html`<${Nothing} title="Nothing left for the EMR yet" />` : html`<${Table} caption="Attempts, oldest first" rows=${data.attempts} keyOf=${(row) => row.request_id} columns=${attemptColumns} />`}
    ${can("transmit") && data.status === "failed" && html`<div class="actions"><${ActionButton} kind="main" act=${() => post(`fhir/observations/${data.observation_id}/transmit/`)}
      said="It is being delivered." done=${() => { close(); changed(); }}>Try again now</${ActionButton}></div>`}`}
  </${Loaded}></${Dialog}>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const attemptColumns = [
  { name: "started_at", head: "When", cell: (row) => fullTime(row.started_at) },
  { name: "status", head: "Answer", cell: (row) => row.status ?? "None" },
  { name: "error_code", head: "Error", cell: (row) => row.error_code ?? "" },
  { name: "duration_ms", head: "Took", number: true, cell: (row) => `${number(row.duration_ms)} ms` },
  { name: "request_id", head: "Request", cell: (row) => html`<span class="hash">${row.request_id}</span>` },
];
