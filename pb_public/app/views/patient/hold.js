// The patient hold: its badge, and the dialogs that set and end it.
import { post, remove } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { dateTime, humanize } from "../../ui/format.js";
import { daysAgo, localInput } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** @typedef {{reason: string, from: string | null, until: string | null, by: string | null, notes?: string | null}} Hold */

/** "Hold: hospital until Jan 20, 10:00". @param {Hold} hold @param {string} [zone] */
export const holdText = (hold, zone) => `Hold: ${hold.reason} until ${dateTime(hold.until, zone)}`;

/** @param {{hold: Hold | null | undefined, zone?: string}} props */
export const HoldBadge = ({ hold, zone }) => hold && html`<${Badge} of="hold" text=${holdText(hold, zone)} />`;

/** @param {{patient: any, zone: string | undefined, close: () => void, done: () => void}} props */
export function HoldDialog({ patient: p, zone, close, done }) {
  const hold = /** @type {Hold | null} */ (p.hold);
  const last = hold?.until && localInput(new Date(Date.parse(hold.until) - 1), zone).slice(0, 10);
  return html`<${Dialog} title=${hold ? "Change the hold" : "Put on hold"} close=${close}>
    <p>Missed readings and silent devices raise no alert until the hold ends. Readings that arrive are judged as always.</p>
    <${Form} submit=${hold ? "Save" : "Put on hold"} cancel=${close} send=${(values) => post(`patients/${p.id}/hold/`, values)}
      done=${() => { toast(hold ? "Hold changed." : "On hold."); close(); done(); }}>${(errors) => html`
      <${Field} label="Reason" name="reason" kind="select" value=${hold?.reason ?? "hospital"} errors=${errors}
        options=${["hospital", "travel", "hospice", "other"].map((reason) => [reason, humanize(reason)])} />
      <${Field} label="Last day" name="until" kind="date" value=${last ?? ""} min=${daysAgo(0)} max=${daysAgo(-30)} errors=${errors}
        hint="At most 30 days ahead. It ends automatically after this day." />
      <${Field} label="Notes" name="notes" kind="textarea" value=${hold?.notes ?? ""} errors=${errors} />`}</${Form}>
  </${Dialog}>`;
}

/** @param {{id: string, close: () => void, done: () => void}} props */
export const EndHoldDialog = ({ id, close, done }) => html`<${Dialog} title="End the hold" close=${close}>
  <p>Readings are expected again from tomorrow on.</p>
  <${Form} submit="End hold" cancel=${close} send=${() => remove(`patients/${id}/hold/`)}
    done=${() => { toast("Hold ended."); close(); done(); }}>${() => null}</${Form}>
</${Dialog}>`;
