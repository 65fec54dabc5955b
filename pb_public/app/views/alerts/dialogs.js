// The dialogs for actions on an alert.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { NoteField } from "../../ui/note_field.js";
import { toast } from "../../ui/toast.js";
import { readingTypes } from "../../ui/vitals.js";
import { instantOf, localInput } from "../../ui/time.js";
import { useLoad } from "../../ui/states.js";
import { inUnits } from "../../ui/units.js";
import { html, useState } from "../../view.js";
import { OpenAlready } from "../escalate.js";
import { StaffField } from "../staff_field.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Alert"]} Alert */

const outcomes = /** @type {[string, string][]} */ (["patient_contacted", "monitoring", "medication_adjusted", "referred", "false_alarm",
  "resolved"].map((o) => [o, humanize(o)]));

/** @typedef {{alert: Alert, close: () => void, done: (answer: any) => void}} Props */

/** Acknowledges with an outcome and a clinical note. @param {Props} props */
export function OutcomeDialog({ alert, close, done }) {
  const [hasFollowUp, setFollowUp] = useState(false);
  const shown = can("resolve") ? outcomes : outcomes.filter(([code]) => code !== "resolved");
  const send = ({ follow_up_at, ...values }) => post(`alerts/${alert.id}/acknowledge/`,
    { ...values, ...(hasFollowUp ? { follow_up_at: instantOf(follow_up_at) } : {}) });
  return html`<${Dialog} title="Acknowledge with an outcome" close=${close}>
    <p>${alert.patient_name}: ${inUnits(alert.message) || humanize(alert.type)}</p>
    <${Form} submit="Acknowledge" draft=${`acknowledge.${alert.id}`} cancel=${close} send=${send}
      done=${closeWith("Acknowledged.", close, done)}>${(errors) => html`
      <${Field} label="Outcome" name="outcome" kind="select" value="patient_contacted" options=${shown} hint="“Resolved” closes the alert"
        errors=${errors} />
      <${NoteField} context="alert" label="Clinical note" name="clinical_note" errors=${errors} />
      <${Field} label="Remind me to follow up" name="follow_up_required" kind="checkbox"
        onChange=${(event) => setFollowUp(event.target.checked)}
        errors=${errors} />
      ${hasFollowUp && html`<${Field} label="Remind me at" name="follow_up_at" kind="datetime-local"
        value=${localInput(new Date(Date.now() + 86_400_000))} errors=${errors} />`}`}
    </${Form}>
  </${Dialog}>`;
}

/** @param {Props} props */
export const NoteDialog = ({ alert, close, done }) => html`<${Dialog} title="Add a note" close=${close}>
  <p>${alert.patient_name}: ${inUnits(alert.message) || humanize(alert.type)}</p>
  <${Form} submit="Add note" draft=${`note.${alert.id}`} cancel=${close}
    send=${(values) => post(`alerts/${alert.id}/notes/`, { notes: values.notes ?? "" })}
    done=${closeWith("Note added.", close, done)}>${(errors) => html`
    <${NoteField} context="alert" label="Note" name="notes" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {Props} props */
export const ResolveDialog = ({ alert, close, done }) => html`<${Dialog} title="Resolve the alert" close=${close}>
  <p>${alert.patient_name}: ${inUnits(alert.message) || humanize(alert.type)}</p>
  <${Form} submit="Resolve" draft=${`resolve.${alert.id}`} cancel=${close} send=${(values) => post(`alerts/${alert.id}/resolve/`, values)}
    done=${closeWith("Resolved.", close, done)}>${(errors) => html`
    <${NoteField} context="alert" label="Note" name="notes" hint="Optional" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

/** @param {Props} props */
export const EscalateAlertDialog = ({ alert, close, done }) => html`<${Dialog} title="Escalate the alert" close=${close}>
  <p>${alert.patient_name}: ${inUnits(alert.message) || humanize(alert.type)}</p>
  <${OpenAlready} patient=${alert.patient_id} close=${close} />
  <${Form} submit="Escalate" draft=${`escalate.alert.${alert.id}`} cancel=${close} send=${(values) =>
    post(`alerts/${alert.id}/escalate/`, values)}
    done=${closeWith("Escalated.", close, done)}>${(errors) => html`
    <${Field} label="Priority" name="priority" kind="select" value=${alert.level === "critical" ? "stat" : "urgent"}
      options=${[["routine", "Routine"], ["urgent", "Urgent"], ["stat", "Stat"]]} errors=${errors} />
    <${Field} label="Reason" name="reason" kind="textarea" hint="Leave blank to use the alert’s message" errors=${errors} />
    <${StaffField} errors=${errors} />`}
  </${Form}>
</${Dialog}>`;

const hours = /** @type {[string, string][]} */ ([["4", "4 hours"], ["12", "12 hours"], ["24", "1 day"], ["72", "3 days"],
  ["168", "1 week"], ["720", "30 days"]]);

/**
 * The most likely kind for a snooze: that of the patient's most severe open alert from readings.
 * @param {string} patient
 * @param {AbortSignal} signal
 */
const likelyKind = (patient, signal) => get("alerts/groups/", { patient_id: patient, page_size: 20 }, signal)
  .then(({ results }) => results.map((/** @type {any} */ group) => group.type)
    .find((/** @type {string} */ type) => readingTypes.some(([code]) => code === type)) ?? "");

/**
 * Snoozes alerts of one kind.
 * @param {{patient: string, name?: string, kind?: string, close: () => void, done: (answer: any) => void}} props without a kind: that
 *   of the most severe open alert
 */
export function SnoozeDialog({ patient, name, kind = "", close, done }) {
  const guess = useLoad((signal) => (kind ? Promise.resolve(kind) : likelyKind(patient, signal)), [patient, kind]);
  const fits = guess.data && readingTypes.some(([code]) => code === guess.data) ? guess.data : "";
  return html`<${Dialog} title=${name ? `Snooze alerts of ${name}` : "Snooze alerts"} close=${close}>
  <p>New alerts of this kind are still recorded, but no one is notified until the snooze ends.
    A worse reading notifies anyway, and alerts that are still open notify when the snooze ends.</p>
  <${Form} submit="Snooze" draft=${`snooze.${patient}`} cancel=${close} done=${closeWith("Snoozed.", close, done)}
    send=${({ hours: length, ...values }) => post(`patients/${patient}/snoozes/`,
      { ...values, type: values.type ?? "", reason: values.reason ?? "",
      ends_at: new Date(Date.now() + Number(length) * 3_600_000 - 1000).toISOString() })}>${(errors) => html`
    <${Field} label="Kind" name="type" kind="select" value=${fits} options=${[...(fits ? [] : [["", "Choose"]]), ...readingTypes]}
      errors=${errors} />
    <${Field} label="For" name="hours" kind="select" value="24" options=${hours} errors=${{ hours: errors.ends_at }} />
    <${Field} label="Include critical alerts (up to 4 hours)" name="include_critical" kind="checkbox" errors=${errors} />
    <${Field} label="Reason" name="reason" kind="textarea" errors=${errors} />`}
  </${Form}>
</${Dialog}>`;
}

/** @param {string} text @param {() => void} close @param {(answer: any) => void} done */
const closeWith = (text, close, done) => (answer) => { toast(text); close(); done(answer); };
