// The dialog that archives a patient, with the date of death.
import { post, Problem } from "../../api.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { daysAgo } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** @param {{id: string, name: string, close: () => void, done: () => void}} props */
export function ArchiveDialog({ id, name, close, done }) {
  const [asks, setAsks] = useState(false); // a stat escalation is open
  const archive = async (/** @type {Record<string, any>} */ values) => {
    try {
      return await post(`patients/${id}/archive/`, { ...values, reason: values.reason ?? "" });
    } catch (error) {
      setAsks(asks || (error instanceof Problem && error.code === "open_stat"));
      throw error;
    }
  };
  return html`<${Dialog} title=${`Archive ${name}`} close=${close}>
    <p>Readings are no longer accepted and no alerts are raised. Open alerts are resolved and open escalations canceled with the reason. You
      can unarchive the patient later.</p>
    <${Form} submit="Archive" danger cancel=${close} send=${archive}
      done=${() => { toast("Archived."); close(); done(); }}>${(errors) => html`
      <${Field} label="Reason" name="reason" kind="textarea" errors=${errors} />
      <${Field} label="Date of death" name="deceased_at" kind="date" max=${daysAgo(0)} errors=${errors}
        hint="Only if the patient has died" />
      <${Field} label="Monitoring ended on" name="effective_at" kind="date" max=${daysAgo(0)} errors=${errors}
        hint="If before today" />
      ${asks && html`<${Field} label="Cancel the open stat escalation" name="confirm" kind="checkbox" errors=${errors} />`}`}</${Form}>
  </${Dialog}>`;
}
