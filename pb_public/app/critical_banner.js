// The banner of unanswered critical alerts, in the bar of every page where it covers and moves nothing, and the dialog that answers one.
import { get } from "./api.js";
import { colleague } from "./colleagues.js";
import { answering, criticalCauses, isSame, putOff, reloadCriticals, unanswered } from "./criticals.js";
import { useKeys } from "./keys.js";
import { canAcknowledge } from "./permissions.js";
import { go } from "./router.js";
import { Dialog, Form } from "./ui/form.js";
import { ageText } from "./ui/format.js";
import { NoteField } from "./ui/note_field.js";
import { useLoad } from "./ui/states.js";
import { html } from "./view.js";
import { applyToGroups, isTakeable } from "./views/alerts/bulk_actions.js";
import { announcement, valueText } from "./views/alerts/announcement.js";
import { causeOf } from "./views/alerts/labels.js";
import { Trend } from "./views/alerts/trend.js";
import { startCall } from "./views/triage/actions.js";

/** @typedef {import("./criticals.js").Group} Group */

/** Opens the dialog, or the chart for roles that do not answer critical alerts. @param {Group | undefined} cause */
function answer(cause) {
  if (cause && canAcknowledge({ level: "critical" })) {
    answering.value = cause;
  } else if (cause) {
    putOff();
    go("patient", { id: cause.patient_id, tab: "alerts" });
  }
}

export function CriticalBanner() {
  const open = unanswered.value;
  const [one] = open;
  useKeys({ ".": { label: "Answer the latest critical alert", act: () => answer(unanswered.peek()[0] ?? criticalCauses.peek()[0]) } },
    { active: criticalCauses.value.length > 0, isFirst: true });
  return html`<p class="unseen" aria-live="assertive">${announcement(open)}</p>
    ${one && html`<section class="emergency no-print" aria-label="Unanswered critical alert">
      <span class="emergency-text"><span aria-hidden="true">▲ </span><strong><bdi>${one.patient_name}</bdi></strong>
        <b>${valueText(one)}</b><small>${`${causeOf(one)}, ${ageText(one.last_at)}`}</small></span>
      ${open.length > 1 && html`<span class="others">and ${open.length - 1} more</span>`}
      <button class="main" aria-keyshortcuts="." onClick=${() => answer(one)}>${canAcknowledge({ level: "critical" }) ? "Answer"
        : "Open chart"} <kbd>.</kbd></button>
      <button class="quiet" onClick=${putOff}>Later</button></section>`}`;
}

/** The dialog of the cause that is being answered. */
export const CriticalAnswer = () => answering.value
  && html`<${AnswerDialog} key=${answering.value.patient_id} cause=${answering.value} />`;

/** @param {{cause: Group}} props */
function AnswerDialog({ cause }) {
  const close = () => { answering.value = null; };
  const patient = useLoad((signal) => get(`patients/${cause.patient_id}/`, {}, signal), [cause.patient_id]).data;
  const current = criticalCauses.value.find((one) => isSame(one, cause));
  const now = current ?? cause;
  const takes = isTakeable(now.escalation);
  const { escalation } = now;
  const send = async (/** @type {any} */ { notes }) => {
    const after = { done: () => {}, undone: () => reloadCriticals() };
    const done = await applyToGroups(takes ? "take" : "acknowledge", [now], notes ?? "", after);
    reloadCriticals();
    return done;
  };
  return html`<${Dialog} title="Critical alert" close=${close}>
    <p class="answered-patient"><strong><bdi>${now.patient_name}</bdi></strong> <small>${now.mrn}</small>
      <${Trend} group=${now} /></p>
    <p class="answered-value"><span aria-hidden="true">▲ </span>${valueText(now)} <small>
      ${`${ageText(now.last_at)}, ${causeOf(now)}`}</small></p>
    ${escalation?.taken && html`<p>Escalation: ${colleague(escalation.assigned_to, escalation.assigned_name)}, in progress</p>`}
    ${!current && html`<p class="notice" role="status">Acknowledged in the meantime.</p>`}
    <p class="acts">${patient?.phone && html`<a class="button" href=${`tel:${patient.phone}`}
        onClick=${() => void startCall({ patient_id: now.patient_id })}>Call ${patient.phone}</a>`}
      <button type="button" onClick=${() => { close(); go("patient", { id: now.patient_id, tab: "alerts" }); }}>Open chart</button></p>
    <${Form} submit=${takes ? "Acknowledge and take" : "Acknowledge"} draft=${`critical.${now.patient_id}`} cancel=${close} send=${send}
      done=${close}>${(errors) => html`
      <${NoteField} context="alert" label="Note" name="notes" maxlength="4000" errors=${errors} />`}</${Form}>
  </${Dialog}>`;
}
