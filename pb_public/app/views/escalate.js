// Escalating a patient: to whom, how urgent, why.
import { post } from "../api.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { toast } from "../ui/toast.js";
import { html } from "../view.js";
import { StaffField } from "./staff_field.js";

/** @param {{patient: {id: string, name: string}, close: () => void, done: () => void}} props */
export const EscalateDialog = ({ patient, close, done }) => html`<${Dialog} title=${`Escalate ${patient.name}`} close=${close}>
  <${Form} submit="Escalate" cancel=${close} send=${(values) => post("escalations/", { ...values, reason: values.reason ?? "", patient_id: patient.id })}
    done=${() => { toast("Escalated."); close(); done(); }}>${(errors) => html`
    <${Field} label="Priority" name="priority" kind="select" value="urgent" options=${[["routine", "Routine"], ["urgent", "Urgent"], ["stat", "Stat"]]} errors=${errors} />
    <${Field} label="Reason" name="reason" kind="textarea" errors=${errors} />
    <${StaffField} errors=${errors} />`}
  </${Form}>
</${Dialog}>`;
