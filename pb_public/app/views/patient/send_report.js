// Sends a report to the patient's chart in the EMR: of a month, or about an escalation.
import { post } from "../../api.js";
import { can } from "../../permissions.js";
import { practice } from "../../session.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { thisMonth } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** Whether the user may send reports, and the EMR takes them. */
export const canSendReports = () => can("transmit") && practice.value.sends_reports;

const send = (/** @type {string} */ id, /** @type {any} */ what) => post(`patients/${id}/report/send/`, what);
const showDelivery = (/** @type {any} */ { status }) => toast(status === "transmitted" ? "The EMR has this report."
  : "The report is being sent to the EMR.");

/** The last months with the current one first, as options. @returns {[string, string][]} */
function months() {
  const [year, month] = thisMonth().split("-").map(Number);
  return Array.from({ length: 13 }, (_, ago) => {
    const at = new Date(Date.UTC(year, month - 1 - ago, 1));
    const name = at.toLocaleDateString(undefined, { month: "long", year: "numeric", timeZone: "UTC" });
    return [at.toISOString().slice(0, 7), ago === 0 ? `${name}, so far` : name];
  });
}

/** Prompts for the month. @param {{id: string, name: string, close: () => void}} props */
export const SendReportDialog = ({ id, name, close }) => html`<${Dialog} title="Send a report to the EMR" close=${close}>
  <p>The report is filed in the EMR's chart of <bdi>${name}</bdi>. Sent again, it replaces the former one.</p>
  <${Form} submit="Send" cancel=${close} send=${(values) => send(id, values)}
    done=${(answer) => { showDelivery(answer); close(); }}>${(errors) => html`
    <${Field} label="Month" name="month" kind="select" options=${months()} errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** Sends the report about an escalation. @param {{one: {id: number, patient_id: string}, about: string}} props */
export const SendEscalation = ({ one, about }) => canSendReports() && html`<${ActionButton} act=${() => send(one.patient_id,
  { escalation_id: one.id })} done=${showDelivery} aria-label=${`Send to EMR: ${about}`}>Send to EMR</${ActionButton}>`;
