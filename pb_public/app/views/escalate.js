// The form that escalates a patient. Open escalations are shown first.
import { get, post } from "../api.js";
import { colleagueInSentence, colleague } from "../colleagues.js";
import { go } from "../router.js";
import { Dialog, Field, Form } from "../ui/form.js";
import { ageText, humanize } from "../ui/format.js";
import { useLoad } from "../ui/states.js";
import { toast } from "../ui/toast.js";
import { html } from "../view.js";
import { StaffField } from "./staff_field.js";

/** @param {{patient: {id: string, name: string}, close: () => void, done: () => void}} props */
export const EscalateDialog = ({ patient, close, done }) => html`<${Dialog} title=${`Escalate ${patient.name}`} close=${close}>
  <${EscalateForm} patient=${patient} close=${close} done=${done} />
</${Dialog}>`;

/** @param {{patient: {id: string, name: string}, close: () => void, done: () => void}} props */
export const EscalateForm = ({ patient, close, done }) => html`
  <${OpenAlready} patient=${patient.id} close=${close} />
  <${Form} submit="Escalate" cancel=${close} draft=${`escalate.${patient.id}`}
    send=${(values) => post("escalations/", { ...values, reason: values.reason ?? "", patient_id: patient.id })}
    done=${(/** @type {any} */ made) => {
      toast(made.assigned_to ? `Escalated to ${colleagueInSentence(made.assigned_to, made.assigned_name)}.` : "Escalated.");
      close();
      done();
    }}>${(errors) => html`
    <${Field} label="Priority" name="priority" kind="select" value="urgent"
      options=${[["routine", "Routine"], ["urgent", "Urgent"], ["stat", "Stat"]]} errors=${errors} />
    <${Field} label="Reason" name="reason" kind="textarea" hint="Shown first to the person who is notified" errors=${errors} />
    <${StaffField} errors=${errors} />`}
  </${Form}>`;

/** Shows the patient's open escalations, to avoid duplicates. @param {{patient: string, close: () => void}} props */
export function OpenAlready({ patient, close }) {
  const open = useLoad((signal) => get("escalations/", { patient_id: patient, active: true, ordering: "urgency", page_size: 5 }, signal),
    [patient]);
  return open.data?.count > 0 && html`<div class="notice warning" role="status"><strong><span
    aria-hidden="true">◆</span> ${open.data.count === 1 ? "1 escalation is already open"
    : `${open.data.count} escalations are already open`}</strong>
    <ul class="plain-list">${open.data.results.map((/** @type {any} */ one) => html`<li key=${one.id}><span>
      ${humanize(one.priority)}, ${ageText(one.created_at)}: ${one.reason.replace(/[.\s]*$/, ".")}
      ${one.assigned_to ? ` With ${colleague(one.assigned_to, one.assigned_name)}, ${one.taken ? "in progress" : "not taken yet"}.`
        : " Not assigned."}</span></li>`)}</ul>
    <button type="button" onClick=${() => { close(); go("patient", { id: patient, tab: "escalations" }); }}>Open ${open.data.count === 1
      ? "it" : "them"}</button></div>`;
}
