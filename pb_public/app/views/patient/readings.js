// The list of a patient's readings: source, EMR delivery, and actions to confirm or retract one.
import { post } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { dateTime, humanize } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { instantOf, localInput, ZoneNote } from "../../ui/time.js";
import { kindNames, readingText } from "../../ui/vitals.js";
import { inUnits } from "../../ui/units.js";
import { html, useState } from "../../view.js";
import { ReadingDialog } from "./enter_reading.js";

const states = /** @type {[string, string][]} */ ([["", "Any state"], ["transmitted", "In the EMR"], ["pending", "Pending"],
  ["processing", "Processing"], ["failed", "Failed"]]);

/** @param {{id: string, active: boolean, turn: number, changed: () => void, zone: string | undefined}} props */
export function Readings({ id, active, turn, changed, zone }) {
  const [filters, setFilters] = useState({ observation_type: "", fhir_status: "" });
  const [errorReading, setErrorReading] = useState(/** @type {any} */ (null));
  const [suspectReading, setSuspectReading] = useState(/** @type {any} */ (null));
  const [isEntering, setEntering] = useState(false);
  return html`<section aria-labelledby="readings">
    <div class="heading"><h2 id="readings">Readings</h2>${active && can("enterReadings")
      && html`<button class="main" onClick=${() => setEntering(true)}>Enter a reading</button>`}</div>
    <div class="filters no-print">
      <${Field} label="Kind" name="kind" kind="select" options=${[["", "All kinds"], ...Object.entries(kindNames)]} onChange=${(event) =>
        setFilters({ ...filters, observation_type: event.target.value })} />
      <${Field} label="EMR" name="emr" kind="select" options=${states} onChange=${(event) =>
        setFilters({ ...filters, fhir_status: event.target.value })} />
    </div>
    <div class="card"><${List} path="ingestion/observations/" query=${{ patient_id: id, ...filters }} caption="Readings, newest first"
      nothing="No readings" turn=${turn} zone=${false} columns=${columns(setErrorReading, setSuspectReading, zone)} />
      <${ZoneNote} of=${zone} owner="the patient’s" /></div>
    ${errorReading && html`<${ErrorDialog} observation=${errorReading} zone=${zone} close=${() => setErrorReading(null)}
      done=${changed} />`}
    ${suspectReading && html`<${ConfirmDialog} observation=${suspectReading} zone=${zone} close=${() => setSuspectReading(null)}
      done=${changed} />`}
    ${isEntering && html`<${ReadingDialog} patient=${id} close=${() => setEntering(false)} done=${changed} />`}
  </section>`;
}

/** @param {(observation: any) => void} question @param {(observation: any) => void} believe @param {string | undefined} zone */
const columns = (question, believe, zone) => [
  { name: "measured_at", head: "Measured", cell: (o) => (isInDoubt(o) ? html`<s>${dateTime(o.measured_at, zone)}</s> <small>
    received ${dateTime(o.created_at, zone)}, time in doubt</small>` : dateTime(o.measured_at, zone)) },
  { name: "reading", head: "Reading", cell: (o) => html`<strong class=${o.status === "entered_in_error" ? "struck"
    : ""}>${readingText(o)}</strong> <small>${kindNames[o.observation_type]}</small>
    ${isSuspect(o) && html` <${Badge} of="suspect" />`}${o.review_state === "confirmed"
      && html` <small>confirmed by ${o.confirmed_by}</small>`}` },
  { name: "alert", head: "Alert", cell: (o) =>
    (o.alert_details ? html`<span title=${inUnits(o.alert_details.message)}><${Badge} of=${o.alert_details.level} /></span>` : "–") },
  { name: "source", head: "From", cell: (o) => `${humanize(o.source)}${o.device_id ? `, ${o.device_id}` : ""}` },
  { name: "emr", head: "EMR", cell: (o) =>
    (o.fhir_status ? html`<${Badge} of=${o.fhir_status} /> <small>${o.transmitted_resource_id}</small>` : "–") },
  { name: "act", head: html`<span class="unseen">Actions</span>`, cell: (o) =>
    (o.status === "entered_in_error" ? html`<${Badge} of="entered_in_error" />` : can("correctReadings")
    && html`${isSuspect(o)
      && html`<button class="quiet" onClick=${() => believe(o)}
        aria-label=${`Confirm: ${readingText(o)}, ${dateTime(o.measured_at, zone)}`}>
      Confirm</button> `}<button class="quiet" onClick=${() => question(o)}
      aria-label=${`Mark as wrong: ${readingText(o)}, ${dateTime(o.measured_at, zone)}`}>Mark as wrong</button>`) },
];

/** @param {any} o */
const isSuspect = (o) => o.review_state === "suspect" && o.status === "final";
/** Whether the device's clock cannot be trusted. @param {any} o */
const isInDoubt = (o) => isSuspect(o) && o.suspect_reason === "device_clock";

/** @param {{observation: any, zone: string | undefined, close: () => void, done: () => void}} props */
const ConfirmDialog = ({ observation, zone, close, done }) => html`<${Dialog} title="Confirm a suspect reading" close=${close}>
  ${isInDoubt(observation) ? html`<p>${readingText(observation)}: measured ${dateTime(observation.measured_at, zone)} by the device’s
    clock, received ${dateTime(observation.created_at, zone)}. The time is in doubt. Its alerts were raised as of receipt. After
    confirmation it counts like any other reading and is sent to the EMR.</p>`
    : html`<p>${readingText(observation)}, ${dateTime(observation.measured_at, zone)}, is far from this patient’s usual values. After
    confirmation it counts like any other reading: it is evaluated and sent to the EMR.</p>`}
  <${Form} submit="Confirm reading" cancel=${close} send=${(values) => post(`ingestion/observations/${observation.id}/confirm/`,
    { notes: values.notes ?? "", ...(isInDoubt(observation) && { measured_at: instantOf(values.measured_at) }) })}
    done=${() => { toast("Confirmed."); close(); done(); }}>${(errors) => html`
    ${isInDoubt(observation) && html`<${Field} label="Measured at" name="measured_at" kind="datetime-local"
      hint="The time of receipt, unless the patient measured earlier" value=${localInput(new Date(observation.created_at))}
      errors=${errors} />`}
    <${Field} label="Notes" name="notes" kind="textarea" maxlength="2000" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {{observation: any, zone: string | undefined, close: () => void, done: () => void}} props */
const ErrorDialog = ({ observation, zone, close, done }) => html`<${Dialog} title="Entered in error" close=${close}>
  <p>${readingText(observation)}, ${dateTime(observation.measured_at, zone)}. The reading stays on record but no longer counts: its
    alerts close,
    and the EMR is updated.</p>
  <${Form} submit="Mark as entered in error" danger cancel=${close} send=${(values) =>
    post(`ingestion/observations/${observation.id}/entered-in-error/`, { reason: values.reason ?? "" })}
    done=${() => { toast("Marked as entered in error."); close(); done(); }}>${(errors) => html`
    <${Field} label="Reason" name="reason" kind="textarea" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;
