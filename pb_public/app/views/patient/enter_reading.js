// Entering a reading by hand, by staff or by the patient.
import { post } from "../../api.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { kinds } from "../../ui/format.js";
import { toast } from "../../ui/toast.js";
import { instantOf, localOf } from "../../ui/when.js";
import { html, useState } from "../../view.js";

const paths = { blood_pressure: "blood-pressure", weight: "weight", pulse_oximetry: "pulse-oximetry", blood_glucose: "blood-glucose" };
const meals = /** @type {[string, string][]} */ ([["", "Not said"], ["fasting", "Fasting"], ["before_meal", "Before a meal"], ["after_meal", "After a meal"], ["bedtime", "At bedtime"], ["random", "At random"]]);

/** @param {string} kind @param {Record<string, string[]>} errors */
function fieldsOf(kind, errors) {
  const value = (/** @type {string} */ label, /** @type {string} */ name, /** @type {any} */ more = {}) => html`<${Field} key=${name} label=${label} name=${name} kind="number" step="any" errors=${errors} ...${more} />`;
  switch (kind) {
    case "weight": return value("Weight (kg)", "weight_kg");
    case "pulse_oximetry": return html`${value("Oxygen saturation (%)", "spo2")}${value("Pulse (bpm)", "pulse", { hint: "May stay empty" })}`;
    case "blood_glucose": return html`${value("Glucose (mg/dL)", "glucose_mg_dl")}<${Field} label="When" name="meal_context" kind="select" options=${meals} errors=${errors} />`;
    default: return html`${value("Systolic (mmHg)", "systolic")}${value("Diastolic (mmHg)", "diastolic")}${value("Pulse (bpm)", "pulse", { hint: "May stay empty" })}`;
  }
}

/** @param {{patient: string, close: () => void, done: (observation: any) => void}} props */
export function ReadingDialog({ patient, close, done }) {
  const [kind, choose] = useState("blood_pressure");
  const send = ({ kind: _, measured_at, ...values }) => post(`ingestion/${paths[kind]}/`, { ...values, patient_id: patient, measured_at: instantOf(measured_at) });
  return html`<${Dialog} title="Enter a reading" close=${close}>
    <${Form} submit="Save" cancel=${close} send=${send} done=${(answer) => { toast(answer.alert_details ? `Saved. Alert: ${answer.alert_details.message}` : "Saved."); close(); done(answer); }}>${(errors) => html`
      <${Field} label="Kind" name="kind" kind="select" value=${kind} options=${Object.entries(kinds)} onChange=${(event) => choose(event.target.value)} />
      <div class="fields" key=${kind}>${fieldsOf(kind, errors)}</div>
      <${Field} label="Measured at" name="measured_at" kind="datetime-local" value=${localOf()} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}
