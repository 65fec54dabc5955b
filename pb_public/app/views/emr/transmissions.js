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
import { useQuery } from "../../query.js";
import { html, useState } from "../../view.js";
import { errors, Requeue } from "./requeue.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["Transmission"]} Transmission */
/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["FHIRStatus"]} Status */

const givenUp = "given_up"; // no state of its own: failed, and not tried again
const states = /** @type {[string, string][]} */ ([["", "All"], ["pending", "Waiting"], ["processing", "On the way"],
  ["transmitted", "Delivered"], ["failed", "Failed"], [givenUp, "Given up"]]);
/** @param {string} state */
const stateName = (state) => states.find(([code]) => code === state)?.[1] ?? words(state);

/** How a delivery stands: what waits for a person to link the patient does not wait for the EMR. @param {any} row */
const standing = (row) => (row.given_up ? "Given up" : row.waits_for === "link" ? "Patient not linked" : stateName(row.status));

export function Transmissions() {
  const [filters, narrow] = useQuery({ status: "", error_code: "", date_from: "", date_to: "" });
  const [turn, again] = useState(0);
  const [open, show] = useState(/** @type {Transmission | null} */ (null));
  const changed = () => again(turn + 1);
  const [fresh, refresh] = useState(0); // the filters are drawn anew, dates too
  const showGivenUp = () => { narrow({ status: givenUp, error_code: "", date_from: "", date_to: "" }); refresh(fresh + 1); };
  const query = filters.status === givenUp ? { ...filters, status: "", given_up: "true" } : filters;
  return html`<${Standing} turn=${turn} changed=${changed} showGivenUp=${showGivenUp} />
    <div class="filters" key=${fresh} role="search" aria-label="Filter the deliveries">
      <${Field} label="State" name="status" kind="select" value=${filters.status} options=${states} onChange=${(event) =>
        narrow({ status: event.target.value })} />
      <${Field} label="Error" name="error_code" kind="select" value=${filters.error_code} options=${errors} onChange=${(event) =>
        narrow({ error_code: event.target.value })} />
      <${Field} label="From" name="date_from" kind="date" value=${filters.date_from} onChange=${(event) =>
        narrow({ date_from: event.target.value })} />
      <${Field} label="To" name="date_to" kind="date" value=${filters.date_to} onChange=${(event) =>
        narrow({ date_to: event.target.value })} />
      <button onClick=${changed}>Fetch anew</button>
      ${can("requeue") && ["", "failed", givenUp].includes(filters.status)
        && html`<${Requeue} of=${filters} turn=${turn} changed=${changed} />`}
    </div>
    <${List} name="" path="fhir/transmissions/" query=${query} turn=${turn} caption="Deliveries, newest first" nothing="No delivery matches"
      open=${show} columns=${columns} />
    ${open && html`<${Detail} id=${open.id} close=${() => show(null)} changed=${changed} />`}`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "id", head: "Delivery" }, { name: "patient_name", head: "Patient" },
  { name: "observation_type", head: "Reading", cell: (row) => (row.form === "reading" ? kinds[row.observation_type] : words(row.form)) },
  { name: "status", head: "State", cell: (row) => html`<${Badge} of=${row.status} text=${standing(row)} />` },
  { name: "attempt_count", head: "Retries", number: true, cell: (row) => `${row.attempt_count} of ${row.max_attempts}` },
  { name: "error_message", head: "What went wrong", cell: (row) => row.error_message ?? "" },
  { name: "next_retry_at", head: "Next attempt", cell: (row) => (row.next_retry_at ? dateTime(row.next_retry_at) : "") },
  { name: "created_at", head: "Made", cell: (row) => dateTime(row.created_at) },
];

/** @param {{turn: number, changed: () => void, showGivenUp: () => void}} props */
function Standing({ turn, changed, showGivenUp }) {
  const status = useLoad((signal) => get("fhir/status/", {}, signal), [turn]);
  const said = (/** @type {any} */ answer) => {
    const tried = `${answer.processed} tried: ${answer.succeeded} delivered, ${answer.failed} failed.`;
    toast(answer.skipped ? `${tried} ${number(answer.skipped)} not tried: they wait for the EMR, or for a patient’s link to it.` : tried,
      answer.failed || answer.skipped ? "problem" : "done");
    changed();
  };
  return html`<${Loaded} from=${status}>${(/** @type {Status} */ s) => html`
    <div class="bar-of-acts"><p><${Badge} of=${s.status} /> <${Badge} of=${s.emr_connection} text=${`EMR: ${line(s)}`} /></p>
      ${can("processPending") && html`<${ActionButton} act=${() => post("fhir/process-pending/")} done=${said}>Deliver what is due now
        </${ActionButton}>`}</div>
    <dl class="figures">
      ${figure("Given up", number(s.queue.given_up))} ${figure("Waiting", number(s.queue.pending))} ${figure("On the way",
        number(s.queue.processing))} ${figure("To be tried again", number(s.queue.failed_awaiting_retry))}
      ${figure("Not linked", number(s.queue.unlinked))} ${figure("To be corrected", number(s.queue.corrections_due))}
      ${figure("Delivered today", number(s.today_stats.transmitted))} ${figure("Failed today",
        number(s.today_stats.failed))} ${figure("Success today", `${s.today_stats.success_rate} %`)}
      ${figure("Up in 30 days", s.uptime)} ${figure("Last delivery", ago(s.emr_last_successful_transmission))}
    </dl>
    ${s.queue.given_up > 0 && html`<p class="notice warning" role="status">${s.queue.given_up === 1 ? "One delivery is"
      : `${number(s.queue.given_up)} deliveries are`} not tried again by themselves.
      Open one to see what to do about it. <button class="quiet" onClick=${showGivenUp}>Show what was given up</button></p>`}`}
        </${Loaded}>`;
}

/** How the line to the EMR is. @param {Status} s */
const line = (s) => (s.emr_away_since ? `away since ${dateTime(s.emr_away_since)}` : s.emr_connection === "disconnected" ? "away"
  : words(s.emr_connection).toLowerCase());

/** @param {string} name @param {any} value */
const figure = (name, value) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`;

/** @param {{id: string, close: () => void, changed: () => void}} props */
function Detail({ id, close, changed }) {
  const delivery = useLoad((signal) => get(`fhir/transmissions/${id}/`, {}, signal), [id]);
  return html`<${Dialog} wide title=${id} close=${close}><${Loaded} from=${delivery}>${(data) => html`
    <${Facts} of=${[["Patient", html`<button class="link" onClick=${() => go("patient", { id: data.patient_id })}>${data.patient_name}
      </button>`], ["Reading", kinds[data.observation_type]],
      ["State", html`<${Badge} of=${data.status} text=${standing(data)} />`], ["What went wrong", data.error_message],
      ...(data.remedy ? [["What to do", data.remedy.text]] : []), ...(data.diagnostics ? [["The EMR’s own words", data.diagnostics]] : []),
      ["Next attempt", data.next_retry_at ? fullTime(data.next_retry_at) : data.given_up ? "None by itself" : "–"]]} />
    <h3>Attempts</h3>
    ${data.attempts.length === 0 ? html`<${Nothing} title="Nothing left for the EMR yet" />`
      : html`<${Table} caption="Attempts, oldest first" rows=${data.attempts} keyOf=${(row) => row.request_id}
      columns=${attemptColumns} />`}
    ${can("transmit") && data.status === "failed" && html`<div class="actions"><${ActionButton} kind="main" act=${() =>
      post(`fhir/observations/${data.observation_id}/transmit/`)}
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
