// The first step: the patient's identity, contact details and time zone.
import { patch, post } from "../../api.js";
import { Field, Form } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { html } from "../../view.js";
import { AddressFields, addressOf, nested, ZonePicker } from "./fields.js";

const genders = /** @type {[string, string][]} */ (["female", "male", "other", "unknown"].map((gender) => [gender, humanize(gender)]));

/** @param {{patient: any, errors: Record<string, string[]>, autofocus?: boolean}} props */
export function PersonFields({ patient, errors, autofocus }) {
  const p = patient ?? {};
  return html`<div class="fields">
      <${Field} label="First name" name="first_name" value=${p.first_name} autocomplete="off" errors=${errors} required
        autofocus=${autofocus} />
      <${Field} label="Last name" name="last_name" value=${p.last_name} autocomplete="off" errors=${errors} required />
      <${Field} label="Date of birth" name="date_of_birth" kind="date" value=${p.date_of_birth} errors=${errors} required />
      <${Field} label="Gender" name="gender" kind="select" options=${genders} value=${p.gender ?? "unknown"} errors=${errors} />
      <${Field} label="Phone" name="phone" kind="tel" value=${p.phone} autocomplete="off" errors=${errors} />
      <${Field} label="Email" name="email" kind="email" value=${p.email} autocomplete="off" errors=${errors} />
      <${AddressFields} address=${p.address} errors=${errors} />
      <${ZonePicker} value=${p.time_zone} errors=${errors} />
    </div>
    <details open=${Object.keys(errors).some((name) => ["mrn", "ssn", "external_id", "gateway_patient_id"].includes(name))}>
      <summary>IDs (MRN, SSN, EMR, device)</summary><div class="fields">
      <${Field} label="MRN" name="mrn" value=${p.mrn} hint=${patient ? "" : "Leave blank to assign automatically"} autocomplete="off"
        errors=${errors} />
      <${Field} label="Social security number" name="ssn" kind="password" autocomplete="off" inputmode="numeric" errors=${errors}
        hint=${p.ssn_last4 ? `Ends in ${p.ssn_last4}. Leave blank to keep it.`
          : patient ? "Not shown again after saving. Leave blank to keep it."
          : "Not shown again after saving."} />
      <${Field} label="EMR ID" name="external_id" value=${p.external_id} autocomplete="off" errors=${errors} />
      <${Field} label="Device gateway patient ID" name="gateway_patient_id" value=${p.gateway_patient_id} autocomplete="off"
        errors=${errors} />
    </div></details>`;
}

/** The person of the form in the server's format. Blank fields that must not be cleared are omitted.
 *  @param {Record<string, any>} values */
export function personOf(values) {
  const body = nested(values);
  body.address = addressOf(body.address);
  for (const kept of ["ssn", "mrn"]) {
    if (body[kept] === null) {
      delete body[kept];
    }
  }
  return body;
}

/** @param {import("./steps.js").StepProps} props */
export const Person = ({ patient, submit, saved }) => html`<${Form} submit=${submit} draft=${patient ? undefined : "enrol:new"}
  send=${(values) => (patient ? patch(`patients/${patient.id}/`, personOf(values)) : post("patients/", personOf(values)))}
  done=${(answer) => saved(patient ? undefined : answer.id)}>${(errors) => html`<${PersonFields} patient=${patient} errors=${errors}
    autofocus=${!patient} />`}</${Form}>`;
