// The dialog for a new escalation of a selected patient.
import { PatientPicker } from "../../ui/patient_picker.js";
import { Dialog } from "../../ui/form.js";
import { html, useState } from "../../view.js";
import { EscalateForm } from "../escalate.js";

/** @param {{close: () => void, done: () => void}} props */
export function NewEscalation({ close, done }) {
  const [patient, setPatient] = useState(/** @type {import("../../ui/patient_picker.js").Patient | null} */ (null));
  const name = patient ? `${patient.first_name} ${patient.last_name}` : "";
  return html`<${Dialog} title=${patient ? `Escalate ${name}` : "New escalation"} close=${close}>
    <${PatientPicker} label="Patient" chosen=${setPatient} />
    ${patient && html`<${EscalateForm} key=${patient.id} patient=${{ id: patient.id, name }} close=${close} done=${done} />`}
  </${Dialog}>`;
}
