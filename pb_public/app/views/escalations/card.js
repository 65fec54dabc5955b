// One escalation: priority, reason, assignee, and actions.
import { patch } from "../../api.js";
import { can } from "../../permissions.js";
import { colleague } from "../../colleagues.js";
import { go } from "../../router.js";
import { me } from "../../session.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime, humanize } from "../../ui/format.js";
import { NoteField } from "../../ui/note_field.js";
import { toast } from "../../ui/toast.js";
import { classes, html, useState } from "../../view.js";
import { SendEscalation } from "../patient/send_report.js";
import { StaffField } from "../staff_field.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Escalation"]} Escalation */

const alive = (/** @type {Escalation} */ one) => one.status === "open" || one.status === "in_progress";
/** Who was notified at each tier. */
const tiers = ["", "on-call paged", "clinical managers paged", "administrators paged"];
const assignable = ["provider", "nurse", "clinical_manager", "admin"];

/** @param {{escalation: Escalation, changed: (escalation: any) => void, named?: boolean}} props */
export function EscalationCard({ escalation: one, changed, named = true }) {
  const [dialog, setDialog] = useState("");
  const change = (/** @type {any} */ values) => patch(`escalations/${one.id}/`, values);
  const mine = one.assigned_to === me.value?.email;
  const about = named ? one.patient_name : `escalation ${one.id}`;
  return html`<li class=${classes("alert", alive(one) ? { stat: "critical", urgent: "warning" }[one.priority] : "ended")}>
    <div class="signs"><${Badge} of=${one.priority} /><${Badge} of=${one.status} />
      ${alive(one) && one.tier > 0 && html`<${Badge} of=${one.tier === 3 ? "critical" : "warning"}
        text=${`Tier ${one.tier}: ${tiers[one.tier]}`} />`}</div>
    <div class="what">
      ${named && html`<button class="link name" onClick=${() => go("patient", { id: one.patient_id, tab: "escalations" })}>
        ${one.patient_name}</button>`}
      <p>${one.reason}</p>
      <small>${dateTime(one.created_at)} (${ago(one.created_at)}) by ${one.created_by === "system" ? "Vigil"
        : colleague(one.created_by)} · ${one.assigned_to ? `with ${colleague(one.assigned_to, one.assigned_name)}` : "not assigned"}
        ${one.resolved_by && ` · resolved by ${one.resolved_by}, ${dateTime(one.resolved_at)}`}${one.cancelled_by
          && ` · canceled by ${one.cancelled_by}, ${dateTime(one.cancelled_at)}`}
        ${one.alert_ids.length > 0 && ` · ${one.alert_ids.length} ${one.alert_ids.length === 1 ? "alert" : "alerts"}`}</small>
      ${one.resolution_notes && html`<p class="note">${one.resolution_notes}</p>`}
      ${one.reminded_at && alive(one) && html`<p class="note">${one.status === "open" ? "Not taken"
        : "Note overdue"}: reminder sent ${ago(one.reminded_at)}.</p>`}
      ${one.history.length > 1 && html`<details><summary>History (${one.history.length})</summary><ol class="plain-list">
        ${one.history.map((step, i) => html`<li key=${i}>
        <span>${dateTime(step.at)} · ${humanize(step.event)} · ${step.user === "system" ? "Vigil" : step.user}${step.detail
          && html`<span class="note"> ${step.detail}</span>`}</span></li>`)}</ol></details>`}
      <${SendEscalation} one=${one} about=${about} />
    </div>
    ${alive(one) && can("changeEscalation") && html`<div class="acts no-print">
      ${one.status === "open" && html`<${ActionButton} kind="main" act=${() => change({ status: "in_progress" })} doneText="In progress."
        done=${changed} aria-label=${`Start: ${about}`}>Start</${ActionButton}>`}
      <button class=${one.status === "in_progress" ? "main" : ""} onClick=${() => setDialog("resolve")}
        aria-label=${`Resolve: ${about}`}>Resolve</button>
      ${!mine && assignable.includes(me.value?.role ?? "") && html`<${ActionButton} act=${() => change({ assigned_to: me.value?.email })}
        doneText="Assigned to you." done=${changed} aria-label=${`Take: ${about}`}>Take</${ActionButton}>`}
      <button onClick=${() => setDialog("note")} aria-label=${`Note: ${about}`}>Note</button>
      <button onClick=${() => setDialog("change")} aria-label=${`Reassign: ${about}`}>Reassign</button>
      <button class="quiet" onClick=${() => setDialog("cancel")} aria-label=${`Cancel: ${about}`}>Cancel</button>
    </div>`}
    ${dialog && html`<${ActionDialog} kind=${dialog} escalation=${one} close=${() => setDialog("")} done=${changed} send=${change} />`}
  </li>`;
}

const titles = { note: "Add a note", resolve: "Resolve the escalation", change: "Reassign or change priority",
  cancel: "Cancel the escalation" };

/**
 * The dialog of an action that needs more input.
 * @param {{kind: string, escalation: Escalation, close: () => void, done: (answer: any) => void, send: (values: any) => Promise<any>}}
 *   props
 */
export function ActionDialog({ kind, escalation, close, done, send }) {
  const fields = {
    resolve: (errors) => html`
      <${NoteField} context="escalation" label="Resolution" name="resolution_notes" errors=${errors} />
      <${Field} label="Minutes with the patient" name="interaction_minutes" kind="number" min="0" max="240"
        hint="Live contact. Added to the time log and counted for billing" errors=${errors} />`,
    change: (errors) => html`
      <${StaffField} value=${escalation.assigned_to} emptyLabel="Not assigned" errors=${errors} />
      <${Field} label="Priority" name="priority" kind="select" value=${escalation.priority}
        options=${[["routine", "Routine"], ["urgent", "Urgent"], ["stat", "Stat"]]} errors=${errors} />`,
    note: (errors) => html`<${NoteField} context="escalation" label="Note" name="notes" maxlength="4000" errors=${errors} />`,
    cancel: (errors) => html`<${NoteField} context="escalation" label="Reason" name="resolution_notes" errors=${errors} />`,
  };
  const status = { resolve: { status: "resolved" }, cancel: { status: "cancelled" }, change: {}, note: {} }[kind];
  const body = (/** @type {any} */ values) => ({
    ...values, ...(values.interaction_minutes === null ? { interaction_minutes: undefined } : {}),
      ...(kind === "note" ? { notes: values.notes ?? "" } : {}),
  });
  return html`<${Dialog} title=${titles[kind]} close=${close}>
    <p>${escalation.patient_name}: ${escalation.reason}</p>
    <${Form} submit=${kind === "change" || kind === "note" ? "Save" : titles[kind].split(" ")[0]} danger=${kind === "cancel"}
      draft=${`escalation.${kind}.${escalation.id}`} cancel=${close}
      send=${(values) => send({ ...body(values), ...status })} done=${(answer) => { toast("Saved."); close(); done(answer); }}>
        ${fields[kind]}</${Form}>
  </${Dialog}>`;
}
