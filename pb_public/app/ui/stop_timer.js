// The running timer: its duration, its category, and the dialog that stops it with a note.
import { post, Problem } from "../api.js";
import { me } from "../session.js";
import { html, useEffect, useState } from "../view.js";
import { Dialog, Field, Form } from "./form.js";
import { clock, dateTime } from "./format.js";
import { NoteField } from "./note_field.js";
import { toast } from "./toast.js";

/** Categories of time. */
export const categories = /** @type {[string, string][]} */ ([["interactive", "Patient communication"],
  ["review", "Reviewing readings"],
  ["interpretation", "Interpreting readings"], ["care_management", "Managing care"]]);

/** Adds the owner of the other entry to an overlap error. @template T @param {Promise<T>} answer @returns {Promise<T>} */
export const explainOverlap = (answer) => answer.catch((problem) => {
  if (problem instanceof Problem && problem.overlaps) {
    const { id, user, user_name, started_at, ended_at } = problem.overlaps;
    const owner = user === me.value?.id ? "your own entry" : `the entry of ${user_name}`;
    throw new Problem(problem.status, { code: problem.code,
      detail: `This overlaps ${owner} (no. ${id}), ${dateTime(started_at)} to ${clock(ended_at)}. Minutes cannot be counted twice.` });
  }
  throw problem;
});

/** Seconds since a time, updated each second. @param {string} since */
function useSeconds(since) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
}

/** @param {{since: string}} props */
export function Elapsed({ since }) {
  const seconds = useSeconds(since);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return html`${seconds >= 3600 && `${Math.floor(seconds / 3600)}:`}${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** The time that stopping now would log. @param {{since: string}} props */
function Logs({ since }) {
  const seconds = useSeconds(since);
  return html`<strong>${Math.floor(seconds / 60)} min ${seconds % 60} s</strong> will be logged`;
}

/** @param {{entry: import("../timer.js").Running, close: () => void, done?: () => void}} props */
export const StopTimer = ({ entry, close, done }) => html`<${Dialog} title="Stop the timer" close=${close}>
  <p>For <strong><bdi>${entry.patient_name}</bdi></strong>, since ${clock(entry.started_at)}: <${Logs} since=${entry.started_at} />.</p>
  <${Form} submit="Stop and log" cancel=${close} draft=${`time.${entry.id}`}
    send=${(/** @type {any} */ values) => explainOverlap(post(`time-entries/${entry.id}/stop/`, values))}
    done=${() => { toast("Time logged."); close(); done?.(); }}>${(errors) => html`
    <${Field} label="Category" name="category" kind="select" value=${entry.category} options=${categories} errors=${errors} />
    <${NoteField} context="note" label="Notes" name="notes" value=${entry.notes} errors=${errors} autofocus
      hint="Required for patient communication: topics discussed" />`}
  </${Form}>
</${Dialog}>`;
