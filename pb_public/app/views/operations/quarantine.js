// Quarantined device events: each is released to its patient or discarded with a reason.
import { post } from "../../api.js";
import { can } from "../../permissions.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { dateTime, humanize } from "../../ui/format.js";
import { PatientPicker } from "../../ui/patient_picker.js";
import { Facts, List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { kindNames } from "../../ui/vitals.js";
import { useQuery } from "../../query.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["KeptEvent"]} Kept */

const states = /** @type {[string, string][]} */ ([["open", "Open"], ["released", "Released"], ["discarded", "Discarded"],
  ["rejected", "Rejected"], ["", "All"]]);
const reasons = ["unknown_patient", "patient_mismatch", "patient_inactive", "device_patient_mismatch", "before_birth", "unsupported_type",
  "conflicting_duplicate"];

export function Quarantine() {
  const [filters, setFilters] = useQuery({ status: "open", reason: "", device_id: "" });
  const [revision, setRevision] = useState(0);
  const [dialog, setDialog] = useState(/** @type {{what: "release" | "confirm" | "discard", event: Kept} | null} */ (null));
  const close = () => setDialog(null);
  const done = () => { close(); setRevision(revision + 1); };
  return html`<div class="filters" role="search" aria-label="Filter the quarantined events">
      <${Field} label="State" name="status" kind="select" value=${filters.status} options=${states} onChange=${(event) =>
        setFilters({ status: event.target.value })} />
      <${Field} label="Reason" name="reason" kind="select" value=${filters.reason} options=${[["", "Any reason"],
        ...reasons.map((reason) => [reason, humanize(reason)])]} onChange=${(event) => setFilters({ reason: event.target.value })} />
      <${Field} label="Device" name="device_id" kind="search" value=${filters.device_id} onChange=${(event) =>
        setFilters({ device_id: event.target.value.trim() })} />
    </div>
    <${List} name="" path="ingestion/quarantine/" query=${filters} turn=${revision} caption="Quarantined events, newest first"
      nothing="No events match" columns=${columns(setDialog)} />
    ${dialog?.what === "release" && html`<${Release} event=${dialog.event} close=${close} done=${done} />`}
    ${dialog?.what === "confirm" && html`<${Confirm} event=${dialog.event} close=${close} done=${done} />`}
    ${dialog?.what === "discard" && html`<${Discard} event=${dialog.event} close=${close} done=${done} />`}`;
}

/** @param {Kept} event */
const lineOf = (event) => `${kindNames[event.measurement_type ?? ""] ?? humanize(event.measurement_type)} of ${event.device_id
  ?? "an unknown device"}`;

/** Its values wait for a person, and its patient is known. @param {Kept} e */
const isToConfirm = (e) => e.implausible && e.patient_id && (e.status === "open" || e.status === "rejected");

/** @param {Kept} e */
const isToRelease = (e) => !isToConfirm(e) && (e.status === "open" || (e.implausible && e.status === "rejected"));

/** @param {(act: {what: "release" | "confirm" | "discard", event: Kept}) => void} start @returns {import("../../ui/table.js").Column[]} */
const columns = (start) => [
  { name: "received_at", head: "Received", cell: (e) => dateTime(e.received_at) },
  { name: "reason", head: "Reason", cell: (e) => html`${humanize(e.reason)}${e.field_errors
    && html`<span class="two">${Object.entries(e.field_errors).map(([field, errors]) => `${field}: ${errors.join(" ")}`).join(" ")}
    </span>`}` },
  { name: "measurement_type", head: "Event", cell: (e) =>
    kindNames[e.measurement_type ?? ""] ?? humanize(e.measurement_type ?? e.event_type) },
  { name: "device_id", head: "Device" },
  { name: "gateway_patient_id", head: "Gateway patient ID" },
  { name: "timestamp", head: "Measured", cell: (e) => dateTime(e.timestamp) },
  { name: "status", head: "State", cell: (e) => html`<${Badge} of=${e.status === "open" ? "warning"
    : e.status} text=${states.find(([code]) => code === e.status)?.[1]} />${e.closed_at
    && html`<span class="two">${e.closed_by}, ${dateTime(e.closed_at)}</span>`}` },
  ...(can("manageQuarantine")
    ? [{ name: "act", head: html`<span class="unseen">Actions</span>`, cell: (e) => {
      const first = isToRelease(e) ? "release" : can("confirmImplausible") && isToConfirm(e) && "confirm";
      return first && html`<div class="acts-of-row">
        <button onClick=${() => start({ what: first, event: e })} aria-label=${`${humanize(first)} ${lineOf(e)}`}>
          ${humanize(first)}</button>
        <button onClick=${() => start({ what: "discard", event: e })} aria-label=${`Discard ${lineOf(e)}`}>Discard</button></div>`;
    } }] : []),
];

/** @param {Kept} event @returns {[any, any][]} */
const facts = (event) => [["Device", event.device_id], ["Gateway patient ID", event.gateway_patient_id],
  ["Measured", dateTime(event.timestamp)], ["Reason", humanize(event.reason)]];

/** @param {{event: Kept, close: () => void, done: () => void}} props */
function Release({ event, close, done }) {
  const released = (/** @type {any} */ reading) => {
    toast(reading.implausible ? "Assigned to the patient. The values must be confirmed." : "Released: the reading is stored.");
    done();
    if (can("readClinical")) {
      go("patient", { id: reading.patient_id });
    }
  };
  return html`<${Dialog} title="Assign the reading to a patient" close=${close}>
    <${Facts} of=${facts(event)} />
    <p class="notice warning">Make sure that this reading belongs to the patient: it may raise alerts and is billed.</p>
    <${Form} submit="Release" cancel=${close} send=${(values) => post(`ingestion/quarantine/${event.id}/release/`,
      { patient_id: values.patient_id ?? "" })} done=${released}>${(errors) => html`
      <${PatientPicker} label="Patient" name="patient_id" errors=${errors} />`}</${Form}>
  </${Dialog}>`;
}

/** @param {{event: Kept, close: () => void, done: () => void}} props */
const Confirm = ({ event, close, done }) => html`<${Dialog} title="Confirm the values" close=${close}>
  <${Facts} of=${facts(event)} />
  <p class="notice warning">The values are stored as reported, under your name. The reading is evaluated and sent like any other.</p>
  <${Form} submit="Confirm" cancel=${close} send=${(values) => post(`ingestion/quarantine/${event.id}/confirm/`,
    { notes: values.notes ?? "" })} done=${() => { toast("Confirmed: the reading is stored."); done(); }}>${(errors) => html`
    <${Field} label="How was this confirmed?" name="notes" kind="textarea" maxlength="500" errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** @param {{event: Kept, close: () => void, done: () => void}} props */
const Discard = ({ event, close, done }) => html`<${Dialog} title="Discard the event" close=${close}>
  <${Facts} of=${facts(event)} />
  <${Form} submit="Discard" danger cancel=${close} send=${(values) => post(`ingestion/quarantine/${event.id}/discard/`,
    { reason: values.reason ?? "" })} done=${() => { toast("Discarded. The event is kept in the record."); done(); }}>${(errors) => html`
    <${Field} label="Reason" name="reason" kind="textarea" maxlength="500" errors=${errors} />`}</${Form}>
</${Dialog}>`;
