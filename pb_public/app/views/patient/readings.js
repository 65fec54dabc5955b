// The list of a patient's readings: source, EMR delivery, and actions to confirm or retract one.
import { post } from "../../api.js";
import { can } from "../../can.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { dateTime, words } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { ZoneNote } from "../../ui/when.js";
import { kinds, reading } from "../../ui/vitals.js";
import { html, useState } from "../../view.js";
import { ReadingDialog } from "./enter_reading.js";

const states = /** @type {[string, string][]} */ ([["", "Any state"], ["transmitted", "In the EMR"], ["pending", "Pending"],
  ["processing", "Processing"], ["failed", "Failed"]]);

/** @param {{id: string, active: boolean, turn: number, changed: () => void, zone: string | undefined}} props */
export function Readings({ id, active, turn, changed, zone }) {
  const [filters, filter] = useState({ observation_type: "", fhir_status: "" });
  const [wrong, question] = useState(/** @type {any} */ (null));
  const [doubted, believe] = useState(/** @type {any} */ (null));
  const [entering, enter] = useState(false);
  return html`<section aria-labelledby="readings">
    <div class="heading"><h2 id="readings">Readings</h2>${active && can("enterReadings")
      && html`<button class="main" onClick=${() => enter(true)}>Enter a reading</button>`}</div>
    <div class="filters no-print">
      <${Field} label="Kind" name="kind" kind="select" options=${[["", "All kinds"], ...Object.entries(kinds)]} onChange=${(event) =>
        filter({ ...filters, observation_type: event.target.value })} />
      <${Field} label="EMR" name="emr" kind="select" options=${states} onChange=${(event) =>
        filter({ ...filters, fhir_status: event.target.value })} />
    </div>
    <div class="card"><${List} path="ingestion/observations/" query=${{ patient_id: id, ...filters }} caption="Readings, newest first"
      nothing="No readings" turn=${turn} zone=${false} columns=${columns(question, believe, zone)} />
      <${ZoneNote} of=${zone} whose="the patient’s" /></div>
    ${wrong && html`<${ErrorDialog} observation=${wrong} zone=${zone} close=${() => question(null)} done=${changed} />`}
    ${doubted && html`<${ConfirmDialog} observation=${doubted} zone=${zone} close=${() => believe(null)} done=${changed} />`}
    ${entering && html`<${ReadingDialog} patient=${id} close=${() => enter(false)} done=${changed} />`}
  </section>`;
}

/** @param {(observation: any) => void} question @param {(observation: any) => void} believe @param {string | undefined} zone */
const columns = (question, believe, zone) => [
  { name: "measured_at", head: "Measured", cell: (o) => dateTime(o.measured_at, zone) },
  { name: "reading", head: "Reading", cell: (o) => html`<strong class=${o.status === "entered_in_error" ? "struck"
    : ""}>${reading(o)}</strong> <small>${kinds[o.observation_type]}</small>
    ${isSuspect(o) && html` <${Badge} of="suspect" />`}${o.review_state === "confirmed"
      && html` <small>confirmed by ${o.confirmed_by}</small>`}` },
  { name: "alert", head: "Alert", cell: (o) =>
    (o.alert_details ? html`<span title=${o.alert_details.message}><${Badge} of=${o.alert_details.level} /></span>` : "–") },
  { name: "source", head: "From", cell: (o) => `${words(o.source)}${o.device_id ? `, ${o.device_id}` : ""}` },
  { name: "emr", head: "EMR", cell: (o) =>
    (o.fhir_status ? html`<${Badge} of=${o.fhir_status} /> <small>${o.transmitted_resource_id}</small>` : "–") },
  { name: "act", head: html`<span class="unseen">Actions</span>`, cell: (o) =>
    (o.status === "entered_in_error" ? html`<${Badge} of="entered_in_error" />` : can("correctReadings")
    && html`${isSuspect(o)
      && html`<button class="quiet" onClick=${() => believe(o)} aria-label=${`Confirm: ${reading(o)}, ${dateTime(o.measured_at, zone)}`}>
      Confirm</button> `}<button class="quiet" onClick=${() => question(o)}
      aria-label=${`Mark as entered in error: ${reading(o)}, ${dateTime(o.measured_at, zone)}`}>Mark as wrong</button>`) },
];

/** @param {any} o */
const isSuspect = (o) => o.review_state === "suspect" && o.status === "final";

/** @param {{observation: any, zone: string | undefined, close: () => void, done: () => void}} props */
const ConfirmDialog = ({ observation, zone, close, done }) => html`<${Dialog} title="Confirm a suspect reading" close=${close}>
  <p>${reading(observation)}, ${dateTime(observation.measured_at, zone)}, is far from this patient’s usual values. After
    confirmation it counts
    like any other reading: it is evaluated and sent to the EMR.</p>
  <${Form} submit="Confirm reading" cancel=${close} send=${(values) => post(`ingestion/observations/${observation.id}/confirm/`,
    { notes: values.notes ?? "" })}
    done=${() => { toast("Confirmed."); close(); done(); }}>${(errors) => html`
    <${Field} label="Notes" name="notes" kind="textarea" maxlength="2000" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {{observation: any, zone: string | undefined, close: () => void, done: () => void}} props */
const ErrorDialog = ({ observation, zone, close, done }) => html`<${Dialog} title="Entered in error" close=${close}>
  <p>${reading(observation)}, ${dateTime(observation.measured_at, zone)}. The reading stays on record but no longer counts: its
    alerts close,
    and the EMR is updated.</p>
  <${Form} submit="Mark as entered in error" danger cancel=${close} send=${(values) =>
    post(`ingestion/observations/${observation.id}/entered-in-error/`, { reason: values.reason ?? "" })}
    done=${() => { toast("Marked as entered in error."); close(); done(); }}>${(errors) => html`
    <${Field} label="Reason" name="reason" kind="textarea" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;
