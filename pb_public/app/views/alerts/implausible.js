// Actions on implausible values: confirm them, or discard them as not measured.
import { post } from "../../api.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** @typedef {import("./dialogs.js").Props} Props */

/** @param {string} text @param {() => void} close @param {(answer: any) => void} done */
const closeWith = (text, close, done) => (answer) => { toast(text); close(); done(answer); };

/** Stores the reported values as a reading. @param {Props} props */
export const ConfirmDialog = ({ alert, close, done }) => html`<${Dialog} title="Confirm the values" close=${close}>
  <p>${alert.patient_name}: ${alert.message ?? humanize(alert.type)}</p>
  <p class="notice warning">The values are stored as reported, under your name. The reading is evaluated and sent like any other.</p>
  <${Form} submit="Confirm" cancel=${close} send=${(values) => post(`ingestion/quarantine/${alert.quarantine_id}/confirm/`,
    { notes: values.notes ?? "" })} done=${closeWith("Confirmed: the reading is stored.", close, done)}>${(errors) => html`
    <${Field} label="How was this confirmed?" name="notes" kind="textarea" maxlength="500" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {Props} props */
export const DiscardDialog = ({ alert, close, done }) => html`<${Dialog} title="Discard the values" close=${close}>
  <p>${alert.patient_name}: ${alert.message ?? humanize(alert.type)}</p>
  <p class="notice">The alert closes. An escalation that only this alert caused is canceled.</p>
  <${Form} submit="Discard" danger cancel=${close} send=${(values) => post(`ingestion/quarantine/${alert.quarantine_id}/discard/`,
    { reason: values.reason ?? "" })} done=${closeWith("Discarded. The values are kept in the record.", close, done)}>${(errors) => html`
    <${Field} label="Reason" name="reason" kind="textarea" maxlength="500" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;
