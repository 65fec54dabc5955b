// What can be done about values that no device should report: somebody vouches for them, or says that nothing was measured.
import { post } from "../../api.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { words } from "../../ui/format.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** @typedef {import("./acts.js").Props} Props */

/** @param {string} said @param {() => void} close @param {(answer: any) => void} done */
const finish = (said, close, done) => (answer) => { toast(said); close(); done(answer); };

/** Makes a reading of the values as they were reported. @param {Props} props */
export const ConfirmDialog = ({ alert, close, done }) => html`<${Dialog} title="Confirm the values" close=${close}>
  <p>${alert.patient_name}: ${alert.message ?? words(alert.type)}</p>
  <p class="notice warning">All values are stored as they were reported, in your name. The reading is judged and sent on like any other.</p>
  <${Form} submit="Confirm" cancel=${close} send=${(values) => post(`ingestion/quarantine/${alert.quarantine_id}/confirm/`,
    { notes: values.notes ?? "" })} done=${finish("Confirmed: the reading is stored.", close, done)}>${(errors) => html`
    <${Field} label="How do you know?" name="notes" kind="textarea" maxlength="500" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {Props} props */
export const DiscardDialog = ({ alert, close, done }) => html`<${Dialog} title="Discard the values" close=${close}>
  <p>${alert.patient_name}: ${alert.message ?? words(alert.type)}</p>
  <p class="notice">The alert ends, and an escalation that came of it alone is cancelled.</p>
  <${Form} submit="Discard" danger cancel=${close} send=${(values) => post(`ingestion/quarantine/${alert.quarantine_id}/discard/`,
    { reason: values.reason ?? "" })} done=${finish("Discarded. The values are kept in the records.", close, done)}>${(errors) => html`
    <${Field} label="Reason" name="reason" kind="textarea" maxlength="500" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;
