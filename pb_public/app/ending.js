// What is shown before a session ends for want of a key or a click.
import { draftCount } from "./drafts.js";
import { endsIn, stay } from "./idle.js";
import { html } from "./view.js";

export function Ending() {
  const left = endsIn.value;
  if (left === 0) {
    return null;
  }
  const drafts = draftCount.value;
  return html`<section class="ending" role="alertdialog" aria-labelledby="ending" aria-describedby="ending-why">
    <div><strong id="ending">You are signed off in
        <span aria-hidden="true"> ${Math.floor(left / 60)}:${String(left % 60).padStart(2,
          "0")}</span><span class="unseen"> two minutes</span></strong>
      <p id="ending-why" role="alert">13 minutes without a key or a click.${drafts > 0 && ` What you began to write is kept.`}</p></div>
    <button class="main" onClick=${stay}>Stay signed in</button>
  </section>`;
}
