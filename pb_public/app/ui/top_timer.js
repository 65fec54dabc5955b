// The timer in the bar: what runs and for whom, a way to stop it, and the offer to start it.
import { post, Problem } from "../api.js";
import { me } from "../session.js";
import { offered, running, startTimer } from "../timer.js";
import { Dialog, Field, Form } from "./form.js";
import { clock, dateTime } from "./format.js";
import { toast } from "./toast.js";
import { go } from "../router.js";
import { html, useEffect, useState } from "../view.js";

const categories = /** @type {[string, string][]} */ ([["interactive", "Talking with the patient"], ["review", "Looking at readings"],
  ["interpretation", "Interpreting readings"], ["care_management", "Managing care"]]);

export function TopTimer() {
  const [stopping, stop] = useState(false);
  const entry = running.value;
  const offer = offered.value;
  if (!entry) {
    return offer && html`<button class="offer" onClick=${() => startTimer(offer.id, offer)}><span aria-hidden="true">◷</span>
      ${offer.call ? "Time this call" : "Start timer"}</button>`;
  }
  return html`<div class="clock" role="group" aria-label="Your timer">
    <span class="runs" role="timer"><${Elapsed} since=${entry.started_at} /></span>
    <button class="link" onClick=${() => go("patient", { id: entry.patient_id })} title=${entry.patient_name}>
      <bdi>${entry.patient_name}</bdi></button>
    <button onClick=${() => stop(true)}>Stop<span class="unseen"> the timer</span></button>
    ${stopping && html`<${StopTimer} entry=${entry} close=${() => stop(false)} />`}
  </div>`;
}

/** @param {{since: string}} props */
function Elapsed({ since }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return html`${seconds >= 3600 && `${Math.floor(seconds / 3600)}:`}${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** @param {{entry: import("../timer.js").Running, close: () => void}} props */
function StopTimer({ entry, close }) {
  const send = (/** @type {any} */ values) => post(`time-entries/${entry.id}/stop/`, values).catch((problem) => {
    if (problem instanceof Problem && problem.overlaps) {
      const { id, user, user_name, started_at, ended_at } = problem.overlaps;
      const whose = user === me.value?.id ? "your own entry" : `the entry of ${user_name}`;
      throw new Problem(problem.status, { code: problem.code,
        detail: `This overlaps ${whose} (no. ${id}), ${dateTime(started_at)} to ${clock(ended_at)}. The same minutes count once.` });
    }
    throw problem;
  });
  return html`<${Dialog} title="Stop the timer" close=${close}>
    <p>For <strong><bdi>${entry.patient_name}</bdi></strong>, since ${clock(entry.started_at)}.</p>
    <${Form} submit="Stop and log" cancel=${close} draft=${`time.${entry.id}`} send=${send}
      done=${() => { toast("Logged."); close(); }}>${(errors) => html`
      <${Field} label="What it was" name="category" kind="select" value=${entry.category} options=${categories} errors=${errors} />
      <${Field} label="Notes" name="notes" kind="textarea" value=${entry.notes} errors=${errors} autofocus
        hint="Needed for time with the patient: what was talked about" />`}
    </${Form}>
  </${Dialog}>`;
}
