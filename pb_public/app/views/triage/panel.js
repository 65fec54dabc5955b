// The side panel of a patient: chart, latest values, open causes, last note, and actions. The focus stays in the list, and J and K continue
// to move in it.
import { get, Problem } from "../../api.js";
import { can } from "../../permissions.js";
import { colleague } from "../../colleagues.js";
import { saveDraft, useDraft } from "../../drafts.js";
import { useKeys } from "../../keys.js";
import { go } from "../../router.js";
import { practice } from "../../session.js";
import { ageAndSex } from "../../ui/age.js";
import { scoreShare } from "../../ui/badge.js";
import { Drawer } from "../../ui/drawer.js";
import { ageText, calendarDate, clock, number, humanize } from "../../ui/format.js";
import { NoteTexts } from "../../ui/note_field.js";
import { Failed, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { readingText } from "../../ui/vitals.js";
import { ZoneNote, zoneShort } from "../../ui/time.js";
import { classes, html, useEffect, useRef, useState } from "../../view.js";
import { acknowledge, startCall, takeableEscalation, takeEscalation } from "./actions.js";
import { Causes, causesOf } from "./causes.js";
import { HistoryChart } from "./history_chart.js";
import { levelLabels, timeText, isStale, stateLabels, valueOf } from "./labels.js";

/** @typedef {import("./order.js").Row} Row */

const loadDelay = 150; // milliseconds on a patient before the record is loaded, so that passing by loads none

/** Loads the panel's data. @param {string} id @param {AbortSignal} signal */
async function read(id, signal) {
  await new Promise((go, stop) => { setTimeout(go, loadDelay); signal.addEventListener("abort", () => stop(signal.reason)); });
  const list = (/** @type {string} */ path, /** @type {any} */ query = {}) =>
    get(path, { patient_id: id, page_size: 50, ...query }, signal).then((answer) => answer.results);
  const [patient, active, acknowledged, escalations, minutes] = await Promise.all([
    get(`patients/${id}/`, {}, signal), list("alerts/", { status: "active" }), list("alerts/", { status: "acknowledged" }),
      list("escalations/", { page_size: 20 }),
    can("readTime") ? list("time-entries/", { page_size: 5 }) : [],
  ]);
  return { patient, alerts: [...active, ...acknowledged], escalations: escalations.filter((/** @type {any} */ e) =>
    ["open", "in_progress"].includes(e.status)), minutes };
}

/** @param {{row: Row, at: number, count: number, work: any}} props */
export function Panel({ row, at, count, work }) {
  const id = row.patient_id;
  const [revision, setRevision] = useState(0);
  const state = `${row.last_reading_at} ${row.unacknowledged_alerts} ${row.active_escalations} ${row.holder?.state} ${revision}`;
  const found = useLoad((signal) => read(id, signal), [id, state]);
  const data = found.data;
  const [note, setNote] = useDraft(`triage.${id}`);
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const phone = useRef(/** @type {HTMLAnchorElement | null} */ (null));
  useEffect(() => {
    if (work.pending === "note") {
      field.current?.focus();
      work.clearPending();
    } else if (work.pending === "take" && data) {
      work.clearPending();
      void takeNext();
    } else if (work.pending === "call" && data) {
      work.clearPending();
      phone.current ? phone.current.click() : toast(`${row.patient_name}: no phone number on record.`, "problem");
    }
  }, [work.pending, data]);
  const open = (data?.alerts ?? []).filter((alert) => !alert.acknowledged);
  const takeable = open.length > 0 ? takeableEscalation(data?.escalations ?? []) : undefined;
  const answer = async (/** @type {any} */ take = null) => {
    const text = note.trim();
    if (await work.acts.answer(row, open, text, () => { saveDraft(`triage.${id}`, text); setRevision((n) => n + 1); }, take)) {
      setNote("");
      setRevision((n) => n + 1);
    }
  };
  const reviewed = async () => {
    if (await work.acts.review(row, note.trim())) {
      setNote("");
    }
  };
  const takeNext = async () => {
    const mine = takeableEscalation(data?.escalations ?? []);
    if (await work.doing(row, mine ? () => takeEscalation(mine) : () => Promise.reject(new Problem(0,
      { detail: "No escalation to take." })))) {
      setRevision((n) => n + 1);
    }
  };
  useKeys({ r: { label: "Mark as reviewed with the note; next patient", act: () => void reviewed() } });
  const head = html`<span class=${classes("badge", { critical: "critical", warning: "warning", normal: "good" }[row.risk_level])}><span
    aria-hidden="true">${levelLabels[row.risk_level][0]}</span>
      ${levelLabels[row.risk_level][1]} ${row.risk_score}</span> <small>${number(at)} of ${number(count)}</small>
    <span class="pair"><button aria-label="Previous patient" onClick=${work.before}><span aria-hidden="true">↑</span> <kbd>K</kbd></button>
      <button aria-label="Next patient" onClick=${work.next}>
      <span aria-hidden="true">↓</span> <kbd>J</kbd></button></span>
    <button class="whole" onClick=${() => work.acts.whole(row)}>Open chart <kbd>O</kbd></button>`;
  const send = open.length > 0 ? (/** @type {boolean} */ isTaking) => answer(isTaking ? takeable : null) : reviewed;
  const foot = html`<${Note} field=${field} note=${note} keep=${setNote} count=${open.length} send=${send}
    leave=${work.back} />
    <${NoteTexts} context="alert" into=${() => field.current} />
    <div class="do">${data?.patient.phone && html`<a class="button main" ref=${phone} href=${`tel:${data.patient.phone}`}
      onClick=${() => void startCall(row)}>Call ${data.patient.phone} <kbd>C</kbd></a>`}
      <button disabled=${open.length === 0} onClick=${() => answer()}>Acknowledge <kbd>A</kbd></button>
      ${takeable && html`<button title="Ctrl or ⌘ with Shift and Enter in the note"
        onClick=${() => answer(takeable)}>Acknowledge and take</button>`}
      ${can("review") && html`<button onClick=${reviewed}>Reviewed <kbd>R</kbd></button>`}</div>`;
  return html`<${Drawer} label=${`${row.patient_name}, side panel`} close=${work.close} head=${head} foot=${foot}>
    <${Who} row=${row} patient=${data?.patient} />
    <${HistoryChart} row=${row} />
    <${Latest} row=${row} />
    ${found.problem && !data ? html`<${Failed} problem=${found.problem} retry=${found.reload} />` : html`
      <${Causes} causes=${causesOf(data?.alerts ?? [])} escalations=${data?.escalations ?? []} loading=${data === null} did=${work.doing}
        row=${row} again=${() => setRevision((n) => n + 1)} />
      <${LastNote} data=${data} />`}
    ${(row.provisional?.length ?? 0) > 0 && html`<p class="notice warning">A template is proposed, and its stricter limits are in force
      until someone decides. <button type="button" class="link"
        onClick=${() => go("patient", { id: row.patient_id, tab: "thresholds" })}>Decide</button></p>`}
    ${row.needs_target_weight && html`<p class="notice warning">Needs a dry weight. <button type="button" class="link"
        onClick=${() => go("patient", { id: row.patient_id, tab: "thresholds" })}>Set it</button></p>`}
    <details class="factors"><summary>Why ${row.risk_score}?</summary><ul>${row.risk_factors.map((factor) => html`<li key=${factor.factor}>
      <strong>${scoreShare(factor, row.risk_factors)}</strong> ${factor.detail}</li>`)}</ul></details>
    <p><${ZoneNote} /></p>
  </${Drawer}>`;
}

/** Shows the date of birth, to verify the patient, and the local time, to call at a suitable hour. @param {{row: Row, patient: any}}
 *  props */
function Who({ row, patient: p }) {
  const home = p?.time_zone || practice.value.time_zone || undefined;
  return html`<div class="of"><h2><bdi>${row.patient_name}</bdi></h2>
    <p><span>${[ageAndSex(p, home), p?.date_of_birth && `born ${calendarDate(p.date_of_birth)}`, row.mrn].filter(Boolean)
      .join(" · ")}</span>
      <span>${p ? p.icd10_codes?.join(", ") || "No diagnosis on record" : "\u00a0"}</span>
      ${p && html`<span>${clock(new Date().toISOString(), home)} local time, ${zoneShort(home)}</span>`}</p></div>`;
}

/** @param {{row: Row}} props */
function Latest({ row }) {
  const shown = Object.entries(row.latest_vitals).map(([kind, vital]) => ({ ...vital, observation_type: kind }));
  return html`<ul class="latest" aria-label="Latest values">${shown.map((vital) => {
    const about = row.concern?.type === vital.observation_type && row.concern?.measured_at === vital.measured_at ? row.concern : null;
    return html`<li key=${vital.observation_type} class=${classes(about?.state, isStale(vital.measured_at) && "stale")}>
      <small>${humanize(vital.observation_type)} · ${ageText(vital.measured_at)}</small>
      <b>${about && html`<span aria-hidden="true">${stateLabels[about.state][0]}</span> `}${about?.change ? `${valueOf(about).text}, `
        : ""}${readingText(vital)}</b></li>`;
  })}</ul>`;
}

/** The last note of an alert or a time entry. @param {{data: any}} props */
function LastNote({ data }) {
  const notes = [
    ...(data?.alerts ?? []).filter((/** @type {any} */ a) => a.clinical_note || a.notes).map((/** @type {any} */ a) =>
      ({ text: a.clinical_note || a.notes, by: colleague(a.acknowledged_by), at: a.acknowledged_at ?? a.created_at })),
    ...(data?.minutes ?? []).filter((/** @type {any} */ t) => t.notes).map((/** @type {any} */ t) =>
      ({ text: t.notes, by: t.user_name, at: t.started_at })),
  ].sort((a, b) => (a.at < b.at ? 1 : -1));
  return notes.length > 0 && html`<section class="last-note"><h3>Last note</h3>
    <p>“${notes[0].text}” <small>${notes[0].by ?? ""}, ${timeText(notes[0].at)}</small></p></section>`;
}

export const noteField = () => /** @type {HTMLTextAreaElement | null} */ (document.querySelector("aside.drawer .note textarea"));

/** @param {{field: any, note: string, keep: (text: string) => void, count: number, send: (isTaking: boolean) => void,
 *  leave: () => void}} props */
function Note({ field, note, keep, count, send, leave }) {
  const label = count === 0 ? "Note for the review" : count === 1 ? "Note for the alert" : `Note for the ${count} alerts`;
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send(event.shiftKey);
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      leave();
    }
  };
  return html`<label class="note"><span class="unseen">${label}</span><textarea ref=${field} rows="1"
    placeholder=${`${label} (saved as a draft)`} maxlength="2000" value=${note}
    onInput=${(event) => keep(event.target.value)} onKeyDown=${key}></textarea><small aria-hidden="true">
      <kbd>Ctrl</kbd> <kbd>Enter</kbd> ${count > 0 ? "acknowledges" : "saves review"}</small></label>`;
}
