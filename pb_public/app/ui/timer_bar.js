// The timer in the top bar: the running timer with its patient and a stop button, or the offer to start one.
import { go } from "../router.js";
import { timerOffer, runningTimer, startTimer } from "../timer.js";
import { html, useState } from "../view.js";
import { Elapsed, StopTimer } from "./stop_timer.js";

export function TopTimer() {
  const [isStopping, setStopping] = useState(false);
  const entry = runningTimer.value;
  const offer = timerOffer.value;
  if (!entry) {
    return offer && html`<button class="offer" onClick=${() => startTimer(offer.id, offer)}><span aria-hidden="true">◷</span>
      ${offer.call ? "Time this call" : "Start timer"}</button>`;
  }
  return html`<div class="clock" role="group" aria-label="Your timer">
    <span class="runs" role="timer"><${Elapsed} since=${entry.started_at} /></span>
    <button class="link" onClick=${() => go("patient", { id: entry.patient_id })} title=${entry.patient_name}>
      <bdi>${entry.patient_name}</bdi></button>
    <button onClick=${() => setStopping(true)}>Stop<span class="unseen"> the timer</span></button>
    ${isStopping && html`<${StopTimer} entry=${entry} close=${() => setStopping(false)} />`}
  </div>`;
}
