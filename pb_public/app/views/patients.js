// All patients of the practice: find one, or enrol a new one.
import { post, put } from "../api.js";
import { go } from "../router.js";
import { is } from "../session.js";
import { Badge } from "../ui/badge.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { calendarDate, words } from "../ui/format.js";
import { List } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { html, useRef, useState } from "../view.js";

const open = (/** @type {any} */ patient) => go("patient", { id: patient.id });

export function Patients() {
  const [search, find] = useState("");
  const [active, show] = useState("true");
  const [adding, add] = useState(false);
  const wait = useRef(0);
  return html`<div class="heading"><h1>Patients</h1>${!is("data_monitor") && html`<button class="main" onClick=${() => add(true)}>Add patient</button>`}</div>
    <div class="filters" role="search">
      <${Field} label="Name or MRN" name="search" kind="search" onInput=${(event) => {
        clearTimeout(wait.current);
        wait.current = setTimeout(() => find(event.target.value.trim()), 300);
      }} />
      <${Field} label="Show" name="active" kind="select" value=${active} options=${[["true", "Active"], ["false", "Archived"]]} onChange=${(event) => show(event.target.value)} />
    </div>
    <${List} path="patients/" query=${{ search, active }} ordering="last_name" caption="Patients" nothing="No patient matches" open=${open} columns=${[
      { name: "name", head: "Name", order: "last_name", cell: (p) => `${p.last_name}, ${p.first_name}` },
      { name: "mrn", head: "MRN" },
      { name: "date_of_birth", head: "Born", cell: (p) => calendarDate(p.date_of_birth) },
      { name: "gender", head: "Gender", cell: (p) => words(p.gender) },
      { name: "programs", head: "Diagnoses", cell: (p) => p.icd10_codes.join(", ") || "–" },
      { name: "status", head: "Status", cell: (p) => html`<${Badge} of=${p.status} />${p.needs_thresholds && html` <${Badge} of="warning" text="Needs thresholds" />`}` },
    ]} />
    ${adding && html`<${PatientDialog} close=${() => add(false)} done=${open} />`}`;
}

const genders = /** @type {[string, string][]} */ (["female", "male", "other", "unknown"].map((g) => [g, words(g)]));

/** The values of the form as the service wants them. @param {Record<string, any>} v */
function bodyOf({ line1, line2, city, state, zip, icd10_codes, ...rest }) {
  return {
    ...rest,
    address: line1 || city ? { line1, line2, city, state, zip } : null,
    icd10_codes: (icd10_codes ?? "").split(/[\s,;]+/).filter(Boolean),
  };
}

/** Enrols a patient, or changes one. @param {{patient?: any, close: () => void, done: (patient: any) => void}} props */
export function PatientDialog({ patient, close, done }) {
  const p = patient ?? {};
  const keep = (values) => (patient ? put(`patients/${patient.id}/`, bodyOf(values)) : post("patients/", bodyOf(values)));
  return html`<${Dialog} wide title=${patient ? "Change patient" : "Add patient"} close=${close}>
    <${Form} submit=${patient ? "Save" : "Add"} cancel=${close} send=${keep} done=${(answer) => { toast("Saved."); close(); done(answer); }}>${(errors) => html`
      <div class="fields">
        <${Field} label="First name" name="first_name" value=${p.first_name} errors=${errors} autofocus />
        <${Field} label="Last name" name="last_name" value=${p.last_name} errors=${errors} />
        <${Field} label="Date of birth" name="date_of_birth" kind="date" value=${p.date_of_birth} errors=${errors} />
        <${Field} label="Gender" name="gender" kind="select" options=${genders} value=${p.gender ?? "unknown"} errors=${errors} />
        ${patient && html`<${Field} label="MRN" name="mrn" value=${p.mrn} errors=${errors} />`}
        <${Field} label="Phone" name="phone" kind="tel" value=${p.phone} errors=${errors} />
        <${Field} label="Email" name="email" kind="email" value=${p.email} errors=${errors} />
        <${Field} label="Street" name="line1" value=${p.address?.line1} errors=${{ line1: errors["address.line1"] }} />
        <${Field} label="Apartment" name="line2" value=${p.address?.line2} errors=${{ line2: errors["address.line2"] }} />
        <${Field} label="City" name="city" value=${p.address?.city} errors=${{ city: errors["address.city"] }} />
        <${Field} label="State" name="state" value=${p.address?.state} errors=${{ state: errors["address.state"] }} />
        <${Field} label="ZIP" name="zip" value=${p.address?.zip} errors=${{ zip: errors["address.zip"] }} />
        <${Field} label="Diagnoses (ICD-10)" name="icd10_codes" value=${p.icd10_codes?.join(", ")} hint="Separated by commas" errors=${errors} />
        <${Field} label="Time zone" name="time_zone" value=${p.time_zone} hint="Empty: the practice's" errors=${errors} />
        <${Field} label="EMR id" name="external_id" value=${p.external_id} errors=${errors} />
        <${Field} label="Gateway's patient id" name="gateway_patient_id" value=${p.gateway_patient_id} errors=${errors} />
      </div>`}
    </${Form}>
  </${Dialog}>`;
}
