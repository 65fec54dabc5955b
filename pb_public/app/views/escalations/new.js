// A new escalation, about whoever is chosen.
import { PickPatient } from "../../ui/pick_patient.js";
import { Dialog } from "../../ui/form.js";
import { html, useState } from "../../view.js";
import { EscalateDialog } from "../escalate.js";

/** @param {{close: () => void, done: () => void}} props */
export function NewEscalation({ close, done }) {
  const [patient, choose] = useState(/** @type {import("../../ui/pick_patient.js").Patient | null} */ (null));
  return patient ? html`<${EscalateDialog} patient=${{ id: patient.id, name: `${patient.first_name} ${patient.last_name}` }} close=${close} done=${done} />`
    : html`<${Dialog} title="New escalation" close=${close}><${PickPatient} label="About whom" chosen=${choose} /></${Dialog}>`;
}
