// Manual entry of a reading, by staff or the patient.
import { post } from "../../api.js";
import { Problem } from "../../request.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { toast } from "../../ui/toast.js";
import { inUnits, stored, unitOf } from "../../ui/units.js";
import { kindNames, vitals } from "../../ui/vitals.js";
import { instantOf, localInput } from "../../ui/time.js";
import { html, useState } from "../../view.js";

/** Converts typed values from display units to stored units. @param {string} kind @param {Record<string, any>} typed */
const asStored = (kind, typed) =>
  ({ ...typed, ...Object.fromEntries(vitals[kind].values.map(({ field, unit }) => [field, stored(typed[field], unit)])) });

/** @param {string} kind @param {Record<string, string[]>} errors */
const fieldsOf = (kind, errors) => html`
  ${vitals[kind].values.map((v) => html`<${Field} key=${v.field} label=${`${v.name} (${unitOf(v.unit)})`} name=${v.field} kind="number"
    step="any" hint=${v.optional ? "Optional" : undefined} errors=${errors} />`)}
  ${vitals[kind].choices?.map((c) => html`<${Field} key=${c.field} label=${c.name} name=${c.field} kind="select" options=${c.options}
    errors=${errors} />`)}`;

/** The question about values outside what a device can measure, by field. @param {string} kind @param {Record<string, any>} body */
const questionsAbout = (kind, body) => Object.fromEntries(vitals[kind].values.filter(({ field, range: [low, high] }) =>
  typeof body[field] === "number" && (body[field] < low || body[field] > high)).map(({ field }) => [field, ["Is that right?"]]));

const asked = "Is that right? Please check what the device shows. If it is right, save it again: it is not stored as a reading, and the "
  + "practice reviews it. If you feel unwell, call 911.";

/** @param {{patient: string, close: () => void, done: (observation: any) => void}} props */
export function ReadingDialog({ patient, close, done }) {
  const [kind, setKind] = useState("blood_pressure");
  const [confirmed, setConfirmed] = useState("");
  const send = ({ kind: _, measured_at, ...values }) => {
    const body = asStored(kind, values);
    const questions = questionsAbout(kind, body);
    const typed = JSON.stringify([kind, values]);
    if (Object.keys(questions).length > 0 && confirmed !== typed) { // prompted once for the same values
      setConfirmed(typed);
      throw new Problem(400, { detail: asked, field_errors: { ...questions, non_field_errors: [asked] } });
    }
    return post(`ingestion/${kind.replaceAll("_", "-")}/`, { ...body, patient_id: patient, measured_at: instantOf(measured_at) });
  };
  return html`<${Dialog} title="Enter a reading" close=${close}>
    <${Form} submit="Save" cancel=${close} send=${send} done=${(answer) => { toast(answer.alert_details
      ? `Saved. Alert: ${inUnits(answer.alert_details.message)}` : "Saved."); close(); done(answer); }}>${(errors) => html`
      <${Field} label="Kind" name="kind" kind="select" value=${kind} options=${Object.entries(kindNames)} onChange=${(event) =>
        setKind(event.target.value)} />
      <div class="fields" key=${kind}>${fieldsOf(kind, errors)}</div>
      <${Field} label="Measured at" name="measured_at" kind="datetime-local" value=${localInput()} errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}
