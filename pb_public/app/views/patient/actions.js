// The actions on a patient from any tab, by button and shortcut: acknowledge with one note, call and time, note, escalate, review, report.
import { download, get, post } from "../../api.js";
import { can, canAcknowledge } from "../../permissions.js";
import { useKeys } from "../../keys.js";
import { runningTimer as timer } from "../../timer.js";
import { Dialog, Form } from "../../ui/form.js";
import { NoteField } from "../../ui/note_field.js";
import { asProblem, useLoad } from "../../ui/states.js";
import { explainOverlap, StopTimer } from "../../ui/stop_timer.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";
import { applyToGroups } from "../alerts/bulk_actions.js";
import { EscalateDialog } from "../escalate.js";
import { TimeDialog } from "./time.js";

/** @typedef {{acknowledge: () => void, call: (() => void) | null, called: () => void, note: (() => void) | null, escalate: (() => void)
 *  | null, review: (() => void) | null,
 *   report: (() => void) | null, running: any}} Acts null: not permitted, or not available now */

/** The tel: link of a phone number. @param {string} number */
export const telephone = (number) => `tel:${number.replace(/[^\d+]/g, "")}`;

/**
 * @param {{id: string, patient: any, standing: any, emergency: boolean, days: number, changed: () => void}} about
 * @returns {{acts: Acts, dialogs: any}}
 */
export function useActions({ id, patient, standing, emergency, days, changed }) {
  const [dialog, setDialog] = useState("");
  const close = () => setDialog("");
  const done = changed;
  const running = timer.value?.patient_id === id && !emergency ? timer.value : null;
  const active = patient?.active === true;
  const logs = can("logTime") && !emergency && active;
  const begin = () => (running ? Promise.resolve()
    : explainOverlap(post("time-entries/start/",
      { patient_id: id, category: "interactive", activity: "phone_call", contact_method: "phone" })))
    .then(() => { toast("Timer started. Press N to stop it with a note."); done(); }, (error) => toast(asProblem(error).message,
      "problem"));
  const dial = () => {
    const link = Object.assign(document.createElement("a"), { href: telephone(patient.phone) });
    document.body.append(link);
    link.click();
    link.remove();
  };
  const acts = {
    acknowledge: () => setDialog("acknowledge"),
    call: logs && patient?.phone ? () => { dial(); void begin(); } : null,
    called: () => { if (logs) { void begin(); } },
    note: logs ? () => setDialog(running ? "stop" : "note") : null,
    escalate: active && can("escalate") ? () => setDialog("escalate") : null,
    review: !emergency && standing && can("review")
      ? () => void post(`triage/patients/${id}/review/`).then(() => { toast("Reviewed."); done(); },
      (error) => toast(asProblem(error).message, "problem")) : null,
    report: can("readClinical") ? () => void download(`patients/${id}/report/`, { days }, "visit-report.pdf").then(() =>
      toast("Report downloaded."), (error) => toast(asProblem(error).message, "problem")) : null,
    running,
  };
  useKeys({
    ...(can("acknowledge") ? { a: { label: "Acknowledge open alerts with a note", act: acts.acknowledge } } : {}),
    ...(acts.call ? { c: { label: "Call and start the timer", act: acts.call } } : {}),
    ...(acts.note ? { n: { label: running ? "Stop the timer with a note" : "Log time with a note", act: acts.note } } : {}),
    ...(acts.escalate ? { e: { label: "Escalate", act: acts.escalate } } : {}),
    ...(acts.review ? { r: { label: "Mark as reviewed", act: acts.review } } : {}),
    ...(acts.report ? { p: { label: "Visit report", act: acts.report } } : {}),
  });
  const name = `${patient?.first_name ?? ""} ${patient?.last_name ?? ""}`.trim();
  const dialogs = html`
    ${dialog === "acknowledge" && html`<${AcknowledgeDialog} id=${id} name=${name} close=${close} done=${done} />`}
    ${dialog === "stop" && html`<${StopTimer} entry=${running} close=${close} done=${done} />`}
    ${dialog === "note" && html`<${TimeDialog} id=${id} title="Note and time" preset=${{ category: "review", activity: "triage" }}
      long=${5} close=${close} done=${done} />`}
    ${dialog === "escalate" && html`<${EscalateDialog} patient=${{ id, name }} close=${close} done=${done} />`}`;
  return { acts, dialogs };
}

/** Acknowledges all open alerts that the user may acknowledge, with one note. @param {{id: string, name: string, close: () => void, done:
 *  () => void}} props */
function AcknowledgeDialog({ id, name, close, done }) {
  const open = useLoad(async (signal) => (await get("alerts/", { patient_id: id, status: "active", page_size: 100 },
    signal)).results.filter(canAcknowledge), [id]);
  const list = open.data ?? [];
  const send = (/** @type {any} */ { notes }) => applyToGroups("acknowledge",
    [/** @type {any} */ ({ alert_ids: list.map((alert) => alert.id), patient_name: name })], notes ?? "",
    { done, undone: done });
  const many = list.length === 1 ? "1 alert" : `${list.length} alerts`;
  return html`<${Dialog} title=${`Acknowledge ${open.data ? many : "open alerts"}`} close=${close}>
    <p>${list.length === 0 && open.data ? "You have no open alerts to acknowledge."
      : html`One note for ${many} of <bdi>${name}</bdi>.`}</p>
    <${Form} submit="Acknowledge" draft=${`acknowledge.${id}`} cancel=${close} send=${send} done=${close}>${(errors) => html`
      <${NoteField} context="alert" label="Note" name="notes" autofocus hint="Optional" errors=${errors} />`}
    </${Form}>
  </${Dialog}>`;
}
