// A manual charge, for services that billing does not detect.
import { post } from "../../api.js";
import { go } from "../../router.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { PatientPicker } from "../../ui/patient_picker.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";
import { codesOf } from "./labels.js";

/** @param {{codes: [string, string][], close: () => void}} props */
export function ManualEntry({ codes, close }) {
  const make = (/** @type {Record<string, any>} */ values) => post("billing/entries/manual-create/", {
    ...values, duration_minutes: values.duration_minutes ?? 0, icd10_codes: values.icd10_codes ? codesOf(values.icd10_codes) : null,
  });
  const made = (/** @type {any} */ entry) => {
    toast(entry.warnings.length > 0 ? "Charge added. A reviewer will check its warnings." : "Charge added.");
    close();
    go("entry", { id: entry.id });
  };
  return html`<${Dialog} title="Add charge" close=${close}>
    <${Form} submit="Add charge" cancel=${close} send=${make} done=${made}>${(errors) => html`
      <${PatientPicker} label="Patient" name="patient_id" errors=${errors} />
      <${Field} label="Code" name="cpt_code" kind="select" options=${[["", "Choose a code"], ...codes]} errors=${errors} />
      <div class="fields">
        <${Field} label="Service date" name="service_date" kind="date" errors=${errors} />
        <${Field} label="Minutes" name="duration_minutes" kind="number" min="0" max="1440" hint="For time-based codes" errors=${errors} />
      </div>
      <${Field} label="Diagnoses (ICD-10)" name="icd10_codes" hint="Separated by commas. Leave blank to use the patient’s."
        errors=${errors} />
      <${Field} label="Notes" name="notes" kind="textarea" maxlength="4000" errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}
