// The patient's time log: timer, finished calls, and the month's minutes.
import { get, patch, post, remove } from "../../api.js";
import { can, canAttest, canChangeTime, scopeOf } from "../../permissions.js";
import { runningTimer } from "../../timer.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { dateTime, minutes, humanize } from "../../ui/format.js";
import { NoteField } from "../../ui/note_field.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { categories, Elapsed, explainOverlap, StopTimer } from "../../ui/stop_timer.js";
import { List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { instantOf, localInput, thisMonth } from "../../ui/time.js";
import { html, useRef, useState } from "../../view.js";

const activities = /** @type {[string, string][]} */ ([["phone_call", "Phone call"], ["video_call", "Video call"], ["message", "Message"],
  ["education", "Education"], ["triage", "Triage"], ["other", "Other"]]);
const methods = /** @type {[string, string][]} */ ([["", "Not specified"], ["phone", "Phone"], ["video", "Video"], ["in_person",
  "In person"],
  ["message", "Message"]]);
const categoryName = (/** @type {string} */ code) => categories.find(([category]) => category === code)?.[1] ?? humanize(code);

/** The category, contact method, and why time does not count. @param {any} t */
const about = (t) => [
  `${categoryName(t.category)}${t.activity ? `, ${humanize(t.activity).toLowerCase()}` : ""}${t.contact_method
    ? `, by ${humanize(t.contact_method).toLowerCase()}` : ""}`,
  t.category === "interactive" && !t.live && "does not count: no live contact",
  t.overlap_seconds > 0 && `${length(t.overlap_seconds)} excluded: already logged`,
].filter(Boolean).join("; ");

/** The start, and the recording time if on another day. @param {any} t */
const when = (t) => (dateTime(t.recorded_at).split(",")[0] === dateTime(t.started_at).split(",")[0] ? dateTime(t.started_at)
  : `${dateTime(t.started_at)}, recorded ${dateTime(t.recorded_at)}`);

/** @param {{id: string, turn: number, changed: () => void}} props */
export function TimeLog({ id, turn, changed }) {
  const [dialog, setDialog] = useState(/** @type {any} */ (null));
  const [changes, setChanges] = useState(0);
  const done = () => { setChanges((n) => n + 1); changed(); };
  const month = thisMonth();
  const summary = useLoad((signal) => get("time-entries/summary/", { patient_id: id, month }, signal), [id, month, changes, turn]);
  return html`<section aria-labelledby="time">
    <div class="heading"><h2 id="time">Time log</h2>${can("logTime") && html`
      <button class="main" onClick=${() => setDialog({ preset: { category: "interactive", activity: "phone_call", contact_method: "phone" },
        title: "Log a phone call" })}>Log a phone call</button>
      <button onClick=${() => setDialog({ preset: { category: "review", activity: "triage" }, title: "Log other time" })}>Log other time
        </button>`}</div>
    <div class="grid">
      ${can("logTime") && html`<${Timer} id=${id} done=${done} />`}
      <div class="card"><h3>This month</h3><${Loaded} from=${summary}>${(data) =>
        html`<${Month} of=${data.results[0]} />`}</${Loaded}></div>
    </div>
    <div class="card"><${List} path="time-entries/" query=${{ patient_id: id }} turn=${changes
      + turn} size=${10} caption="Time entries" nothing=${scopeOf("read_time_entries") === "own"
        ? "You have logged nothing. Colleagues’ entries are not shown to your role" : "Nothing logged yet"} columns=${[
      { name: "started_at", head: "Started", cell: when },
      { name: "duration", head: "Length", number: true, cell: (t) => (t.running ? html`<${Badge} of="running" />`
        : length(t.duration_seconds)) },
      { name: "category", head: "Activity", cell: about },
      { name: "user_name", head: "Who" }, { name: "notes", head: "Notes" },
      { name: "billed", head: "Billing", cell: (t) => (t.billed ? html`<${Badge} of="billed" />` : "Not billed") },
      { name: "attest", head: "Attested", cell: (t) => (t.attested_at ? `${t.attested_by}, ${dateTime(t.attested_at)}`
        : canAttest(t) ? html`<${ActionButton} act=${() => post(`time-entries/${t.id}/attest/`)} doneText="Attested." done=${done}
        aria-label=${`Attest that the entry of ${dateTime(t.started_at)} was contact with the patient`}>Attest contact</${ActionButton}>`
        : t.needs_attestation ? "Awaiting attestation" : "–") },
      { name: "act", head: html`<span class="unseen">Actions</span>`, cell: (t) => !t.running && canChangeTime(t)
        && html`<button class="quiet" aria-label=${`Edit the entry of ${dateTime(t.started_at)}`} onClick=${() => setDialog({ entry: t })}>
        Edit</button>
        <${ActionButton} kind="quiet" act=${() => remove(`time-entries/${t.id}/`)} doneText="Removed." done=${done}
          aria-label=${`Remove the entry of ${dateTime(t.started_at)}`}>Remove</${ActionButton}>` },
    ]} /></div>
    ${dialog && html`<${TimeDialog} id=${id} ...${dialog} close=${() => setDialog(null)} done=${done} />`}
  </section>`;
}

/** @param {number} seconds */
const length = (seconds) => (seconds < 60 ? `${seconds} s` : minutes(Math.floor(seconds / 60)));

/** @param {{of: any}} props */
function Month({ of }) {
  const m = of ?? { counted_minutes: 0, interactive_minutes: 0, care_management_minutes: 0, not_live_minutes: 0, review_minutes: 0,
    interpretation_minutes: 0, next_threshold_minutes: 20 };
  const next = m.next_threshold_minutes;
  return html`<p><strong>${minutes(m.counted_minutes)}</strong> billable, ${minutes(m.interactive_minutes)} patient
    communication, ${minutes(m.care_management_minutes)} care
    management, ${minutes(m.review_minutes)} review, ${minutes(m.interpretation_minutes)} interpretation</p>
    ${m.not_live_minutes > 0 && html`<p>${minutes(m.not_live_minutes)} do not count: no contact by phone, video or in person.
      </p>`}
    ${next === null ? html`<p>All billable time steps for this month are met.</p>`
      : html`<progress max=${next} value=${Math.min(m.counted_minutes, next)}
        aria-label="Minutes toward the next billable step"></progress>
        <p>${next - m.counted_minutes > 0 ? `${minutes(next - m.counted_minutes)} more to the next billable step of ${minutes(next)}.`
          : `Step of ${minutes(next)} met.`}</p>`}`;
}

/** The user's timer: one at a time, for any patient. @param {{id: string, done: () => void}} props */
function Timer({ id, done }) {
  const [isStopping, setStopping] = useState(false);
  const entry = runningTimer.value;
  const start = (/** @type {any} */ values) => explainOverlap(post("time-entries/start/", { ...values, patient_id: id,
    ...(values.category === "interactive" ? { activity: "phone_call", contact_method: "phone" } : {}) }));
  return html`<div class="card"><h3>Timer</h3>${entry ? html`
      <p class="timer" role="timer"><${Elapsed} since=${entry.started_at} /></p>
      <p>${categoryName(entry.category)}${entry.patient_id !== id && html`, for <strong><bdi>${entry.patient_name}</bdi></strong>`}</p>
      <button class="main" onClick=${() => setStopping(true)}>Stop timer</button>
      ${isStopping && html`<${StopTimer} entry=${entry} close=${() => setStopping(false)} done=${done} />`}`
    : html`<${Form} submit="Start timer" send=${start} done=${() => { toast("Timer started."); done(); }}>${(errors) => html`
        <${Field} label="Category" name="category" kind="select" value="interactive" options=${categories} errors=${errors} />`}</${Form}>`}
  </div>`;
}

const before = (/** @type {number} */ long) => new Date(Date.now() - long * 60_000);

/** Logs finished time, or edits an entry. @param {{id: string, title?: string, preset?: any, long?: number, entry?: any,
 * close: () => void, done: () => void}} props */
export function TimeDialog({ id, title = "Edit entry", preset, long: usual = 20, entry, close, done }) {
  const v = entry ?? preset;
  const [startedAt, setStartedAt] = useState(entry ? new Date(entry.started_at) : before(usual));
  const touched = useRef(Boolean(entry));
  const onMinutes = (/** @type {any} */ event) => { // until the user sets a start time, the logged time ends now
    if (!touched.current && event.target.valueAsNumber > 0) {
      setStartedAt(before(event.target.valueAsNumber));
    }
  };
  const send = ({ minutes: long, started_at, ...values }) => {
    /** @type {Record<string, any>} */
    const body = { ...values, started_at: instantOf(started_at), duration_seconds: long === null ? null : Math.round(long * 60) };
    if (!entry && body.contact_method === null) { // the activity implies it
      delete body.contact_method;
    }
    return explainOverlap(entry ? patch(`time-entries/${entry.id}/`, body) : post("time-entries/", { ...body, patient_id: id }));
  };
  return html`<${Dialog} title=${title} close=${close}>
    <${Form} submit=${entry ? "Save" : "Log"} draft=${entry ? `time.change.${entry.id}` : `time.log.${id}`} cancel=${close} send=${send}
      done=${() => { toast("Time logged."); close(); done(); }}>${(errors) => html`
      <div class="fields">
        <${Field} label="Started" name="started_at" kind="datetime-local" value=${localInput(startedAt)}
          onInput=${() => { touched.current = true; }} errors=${errors} />
        <${Field} label="Minutes" name="minutes" kind="number" min="1" max="240" step="any" onInput=${onMinutes} value=${entry
          ? Math.round(entry.duration_seconds / 6) / 10 : usual} errors=${{ minutes: errors.duration_seconds ?? errors.ended_at }} />
        <${Field} label="Category" name="category" kind="select" value=${v.category} options=${categories} errors=${errors} />
        <${Field} label="Activity" name="activity" kind="select" value=${v.activity ?? "other"} options=${activities} errors=${errors} />
        <${Field} label="Contact by" name="contact_method" kind="select" value=${v.contact_method
          ?? ""} options=${methods} hint="Only phone, video and in-person contact counts" errors=${errors} />
      </div>
      <${NoteField} context="note" label="Notes" name="notes" autofocus=${Boolean(preset)} value=${v.notes} errors=${errors}
        hint="Required for patient communication: topics discussed" />`}
    </${Form}>
  </${Dialog}>`;
}
