// The audit trail: search, details with every change, and verification of the hash chain.
import { download, get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { Combo } from "../../ui/combo.js";
import { ActionButton, Dialog, Field } from "../../ui/form.js";
import { fullTime, number, humanize } from "../../ui/format.js";
import { PatientPicker } from "../../ui/patient_picker.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Facts, List, Table } from "../../ui/table.js";
import { useQuery } from "../../query.js";
import { html, useState } from "../../view.js";
import { eventCodes, eventName, recordName, recordTypes } from "./audit_events.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["AuditEntry"]} Entry */

const outcomes = /** @type {[string, string][]} */ ([["", "Any outcome"], ["0", "Success"], ["4", "Minor failure"],
  ["8", "Serious failure"], ["12", "Major failure"]]);
/** @param {string} code */
const outcome = (code) => html`<${Badge} of=${code === "0" ? "succeeded" : code === "4" ? "warning" : "failed"}
  text=${outcomes.find(([one]) => one === code)?.[1]} />`;
const actions = { C: "Created", R: "Read", U: "Changed", D: "Deleted", E: "Executed" };

export function Audit() {
  const [filters, setFilters] = useQuery({ event: "", actor: "", resource_type: "", resource_id: "", outcome: "", patient_id: "",
    date_from: "",
    date_to: "" },
    ["actor", "resource_id", "patient_id"]);
  const [open, setOpen] = useState(/** @type {number | null} */ (null));
  const narrow = (/** @type {string} */ name) => (/** @type {any} */ event) => setFilters({ [name]: event.target.value.trim() });
  return html`<${Verify} />
    <div class="filters" role="search" aria-label="Filter the audit trail">
      <${Combo} label="Event" find=${findEvents} eager value=${filters.event ? optionOf(filters.event) : null} placeholder="Any event"
        chosen=${(/** @type {any} */ one) => setFilters({ event: one?.value ?? "" })} />
      <${Field} label="Who" name="actor" kind="search" value=${filters.actor} placeholder="ID or email" onChange=${narrow("actor")} />
      <${Field} label="Record type" name="resource_type" kind="select" value=${filters.resource_type} options=${types}
        onChange=${narrow("resource_type")} />
      <${Field} label="Record ID" name="resource_id" kind="search" value=${filters.resource_id} onChange=${narrow("resource_id")} />
      <${Field} label="Outcome" name="outcome" kind="select" value=${filters.outcome} options=${outcomes} onChange=${narrow("outcome")} />
      <${Field} label="From" name="date_from" kind="date" value=${filters.date_from} onChange=${narrow("date_from")} />
      <${Field} label="To" name="date_to" kind="date" value=${filters.date_to} onChange=${narrow("date_to")} />
      <${PatientPicker} label="Patient" first=${filters.patient_id} chosen=${(patient) => setFilters({ patient_id: patient?.id ?? "" })} />
      <${ActionButton} act=${() => download("audit/events/", { ...filters, format: "csv" }, "audit.csv")}>Download as CSV
        </${ActionButton}>
    </div>
    <${List} name="" path="audit/events/" query=${filters} size=${50} caption="Audit trail, newest first" nothing="No entries match"
      open=${(/** @type {Entry} */ entry) => setOpen(entry.id)} columns=${columns} />
    ${open !== null && html`<${Detail} id=${open} close=${() => setOpen(null)} />`}`;
}

const optionOf = (/** @type {string} */ code) => ({ value: code, text: eventName(code), more: code });
const findEvents = async (/** @type {string} */ term) => eventCodes.map(optionOf).filter(({ text, more }) =>
  `${text} ${more}`.toLowerCase().includes(term.toLowerCase()));
const types = /** @type {[string, string][]} */ ([["", "Any record"], ...recordTypes.map((type) => [type, recordName(type)])]);

/** @param {Entry} entry */
const whoOf = (entry) => entry.actor_email ?? entry.actor_name ?? humanize(entry.actor_type);

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "id", head: "No.", number: true }, { name: "recorded_at", head: "When", cell: (entry) =>
    html`<span class="nowrap">${fullTime(entry.recorded_at)}</span>` },
  { name: "event", head: "Event", cell: (entry) => eventName(entry.event) },
  { name: "actor", head: "Who", cell: (entry) =>
    html`${whoOf(entry)}${entry.actor_role && html`<span class="two">${humanize(entry.actor_role)}</span>`}` },
  { name: "resource", head: "Record", cell: (entry) => html`${entry.resource_type
    ? recordName(entry.resource_type) : "–"}${entry.resource_id
    && html`<span class="two hash">${entry.resource_id}</span>`}` },
  { name: "changed_fields", head: "Fields", cell: (entry) => entry.changed_fields.join(", ") },
  { name: "outcome", head: "Outcome", cell: (entry) => outcome(entry.outcome) },
  { name: "source_ip", head: "Source IP" },
];

function Verify() {
  const [result, setResult] = useState(/** @type {any} */ (null));
  return html`<div class="bar-of-acts"><div role="status">${result && (result.valid
      ? html`<${Badge} of="healthy" text="Unbroken" /> ${number(result.checked)} entries checked. <span class="hash">${result.head_hash}
        </span>`
      : html`<${Badge} of="failed" text="Broken" /> The chain is broken from entry ${result.first_invalid_id}.`)}</div>
    <${ActionButton} act=${() => get("audit/verify/").then(setResult)}>Verify chain</${ActionButton}></div>`;
}

/** @param {{id: number, close: () => void}} props */
function Detail({ id, close }) {
  const entry = useLoad((signal) => get(`audit/events/${id}/`, {}, signal), [id]);
  return html`<${Dialog} wide title=${`Entry ${id}`} close=${close}><${Loaded} from=${entry}>${(/** @type {Entry} */ e) => html`
    <${Facts} of=${[["When", fullTime(e.recorded_at)], ["Event", `${eventName(e.event)} (${e.event})`],
      ["Action", actions[e.action] ?? e.action],
      ["Outcome", outcome(e.outcome)], ["Who", whoOf(e)], ["Role", humanize(e.actor_role)],
      ["Record", [e.resource_type && recordName(e.resource_type), e.resource_id].filter(Boolean).join(" ") || "–"],
      ["Patient", e.patient_id], ["Source IP", e.source_ip],
      ["Client", e.client], ["Request", e.request_id], ["Reason", e.reason]]} />
    ${e.changes && Object.keys(e.changes).length > 0
      && html`<h3>Changes</h3><div class="changes"><${Table} caption="Changes" rows=${Object.entries(e.changes).map(([field, change]) =>
      ({ field, ...change }))} keyOf=${(row) => row.field} columns=${changeColumns} /></div>`}
    <h3>Hash</h3><p class="hash">${e.hash}<span class="two">after ${e.prev_hash}</span></p>`}
  </${Loaded}></${Dialog}>`;
}

/** @param {any} value */
const written = (value) => (value === null || value === undefined || value === "" ? "–" : typeof value === "object" ? JSON.stringify(value)
  : String(value));
/** @type {import("../../ui/table.js").Column[]} */
const changeColumns = [{ name: "field", head: "Field", cell: (row) => humanize(row.field) }, { name: "old", head: "Before", cell: (row) =>
  written(row.old) }, { name: "new", head: "After", cell: (row) => written(row.new) }];
