// The warning before an idle session ends.
import { draftCount } from "./drafts.js";
import { secondsLeft, extendSession } from "./idle.js";
import { html } from "./view.js";
import { say } from "./language.js";

export function SessionExpiry() {
  const left = secondsLeft.value;
  if (left === 0) {
    return null;
  }
  const drafts = draftCount.value;
  return html`<section class="ending" role="alertdialog" aria-labelledby="ending" aria-describedby="ending-why">
    <div><strong id="ending">${say("You will be signed out in")}
        <span aria-hidden="true"> ${Math.floor(left / 60)}:${String(left % 60).padStart(2,
          "0")}</span><span class="unseen"> ${say("two minutes")}</span></strong>
      <p id="ending-why" role="alert">${say("No activity for 13 minutes.")}${drafts > 0 && ` ${say("Your drafts are saved.")}`}</p></div>
    <button class="main" onClick=${extendSession}>${say("Stay signed in")}</button>
  </section>`;
}
