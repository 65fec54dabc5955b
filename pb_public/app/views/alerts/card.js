// One alert: value and bound, state, actions, and its history.
import { get, post } from "../../api.js";
import { can, canAcknowledge } from "../../permissions.js";
import { colleagueInSentence } from "../../colleagues.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton } from "../../ui/form.js";
import { ago, clock, dateTime, fullTime, humanize } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { classes, html, useState } from "../../view.js";
import { EscalateAlertDialog, NoteDialog, OutcomeDialog, ResolveDialog } from "./dialogs.js";
import { ConfirmDialog, DiscardDialog } from "./implausible.js";
import { scoreParts, typeName } from "./labels.js";

export { typeName };

/** @typedef {import("./dialogs.js").Alert} Alert */

const dialogs = { outcome: OutcomeDialog, note: NoteDialog, resolve: ResolveDialog, escalate: EscalateAlertDialog,
  confirm: ConfirmDialog, discard: DiscardDialog };
const elsewhere = ["escalate", "confirm", "discard"]; // these do not return the alert
const ended = (/** @type {Alert} */ alert) => alert.status === "resolved" || alert.status === "auto_resolved";

/** @param {{alert: Alert, changed: (alert: any) => void, named?: boolean, lit?: boolean}} props named shows the patient's name */
export function AlertCard({ alert, changed, named = true, lit = false }) {
  const [dialog, setDialog] = useState(/** @type {keyof typeof dialogs | ""} */ (""));
  const [open, setOpen] = useState(false);
  const DialogComponent = dialog && dialogs[dialog];
  const done = (/** @type {any} */ answer) => (elsewhere.includes(dialog) ? get(`alerts/${alert.id}/`).then(changed, () => {})
    : changed(answer));
  const about = `${named ? `${alert.patient_name}, ` : ""}${typeName(alert.type)}`;
  return html`<li class=${classes("alert", ended(alert) ? "ended" : alert.level, lit && "moved")}>
    <div class="signs"><${Badge} of=${alert.level} /><${Badge} of=${alert.status} />${alert.snoozed && html`<${Badge} of="snoozed" />`}
      ${alert.late && html`<${Badge} of="late" />`}${alert.time_in_doubt
        && html`<${Badge} of="time_in_doubt" />`}${alert.resolution_reason && html`<${Badge} of=${alert.resolution_reason} />`}
      ${alert.escalation_id && html`<span class="badge warning"><span aria-hidden="true">↑</span> Escalated</span>`}</div>
    <div class="what">
      ${named && html`<button class="link name" onClick=${() => go("patient", { id: alert.patient_id, tab: "alerts" })}>
        ${alert.patient_name}</button>`}
      <p><strong>${typeName(alert.type)}.</strong> ${alert.message}</p>
      <${ScoreParts} of=${scoreParts(alert)} />
      ${alert.held_until && html`<p class="note">Escalates at ${clock(alert.held_until)} unless a repeat reading is better:
        the patient was prompted to measure again.</p>`}
      ${alert.pushed === false && alert.push_reason && html`<p class="note">${alert.push_reason}</p>`}
      ${alert.patient_phone && html`<p class="note">Phone: <a href=${`tel:${alert.patient_phone.replace(/[^\d+]/g, "")}`}>
        ${alert.patient_phone}</a></p>`}
      <small>${dateTime(alert.created_at)} (${ago(alert.created_at)})${alert.acknowledged_by
        && ` · acknowledged by ${colleagueInSentence(alert.acknowledged_by)}, ${dateTime(alert.acknowledged_at)}`}
        ${alert.outcome && ` · ${humanize(alert.outcome)}`}${alert.follow_up_at && ` · follow up ${dateTime(alert.follow_up_at)}`}</small>
      ${[alert.notes, alert.clinical_note].filter(Boolean).map((note, i) => html`<p key=${i} class="note">${note}</p>`)}
    </div>
    <div class="acts no-print">
      ${alert.status === "active" && canAcknowledge(alert) && html`
        <${ActionButton} kind="main" act=${() => post(`alerts/${alert.id}/acknowledge/`, {})} doneText="Acknowledged." done=${changed}
          aria-label=${`Acknowledge: ${about}`}>Acknowledge</${ActionButton}>`}
      ${!ended(alert) && canAcknowledge(alert) && html`<button onClick=${() => setDialog("outcome")}
        aria-label=${`Acknowledge with outcome: ${about}`}>Acknowledge with outcome</button>`}
      ${!ended(alert) && can("resolve") && html`<button onClick=${() => setDialog("resolve")}
        aria-label=${`Resolve: ${about}`}>Resolve</button>`}
      ${alert.quarantine_id && !["confirmed", "discarded"].includes(alert.outcome ?? "") && can("confirmImplausible") && html`
        <button onClick=${() => setDialog("confirm")} aria-label=${`Confirm values: ${about}`}>Confirm values</button>
        <button onClick=${() => setDialog("discard")} aria-label=${`Discard values: ${about}`}>Discard values</button>`}
      ${can("annotate") && html`<button onClick=${() => setDialog("note")} aria-label=${`Note: ${about}`}>Note</button>`}
      ${!ended(alert) && can("escalate") && html`<button onClick=${() => setDialog("escalate")}
        aria-label=${`Escalate: ${about}`}>Escalate</button>`}
      <button class="quiet" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}
        aria-label=${`History: ${about}`}>History</button>
    </div>
    ${open && html`<${Trail} alert=${alert} />`}
    ${DialogComponent && html`<${DialogComponent} alert=${alert} close=${() => setDialog("")} done=${done} />`}
  </li>`;
}

/** The parts of an early warning score. @param {{of: ReturnType<typeof scoreParts>}} props */
const ScoreParts = ({ of }) => of.length > 0 && html`<ul class="note" aria-label="Parts of the score">${of.map(({ name, value, points }) =>
  html`<li key=${name}>${name} ${value}: <strong>${points} ${points === 1 ? "point" : "points"}</strong></li>`)}</ul>`;

/** @param {{alert: Alert}} props */
function Trail({ alert }) {
  const detail = useLoad((signal) => get(`alerts/${alert.id}/`, {}, signal),
    [alert.id, alert.status, alert.notes, alert.clinical_note, alert.escalation_id]);
  return html`<div class="trail"><${Loaded} from=${detail}>${(data) => html`<ol>${data.audit_trail.map((step, i) => html`
    <li key=${i}><strong>${humanize(step.action)}</strong> ${fullTime(step.timestamp)}, ${step.actor === "system" ? "Vigil"
      : step.actor}${step.detail && html`: ${step.detail}`}</li>`)}</ol>`}</${Loaded}></div>`;
}
