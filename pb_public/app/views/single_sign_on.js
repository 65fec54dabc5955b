// Sign-in with the practice's identity provider, if configured, and launches from the EMR.
import { Problem } from "../api.js";
import { loginURL, completeSignIn, loadOffer, offer } from "../single_sign_on.js";
import { asProblem } from "../ui/states.js";
import { html, useEffect, useState } from "../view.js";
import { say, sayProblem } from "../language.js";

/** @param {{onSecondFactor: (problem: Problem) => void}} props onSecondFactor is called if a second factor is required in addition */
export function SingleSignOn({ onSecondFactor }) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {(Problem & {newWindow?: string}) | null} */ (null));
  useEffect(() => {
    loadOffer().catch(() => {}); // the password form shows connection errors
    setBusy(true);
    completeSignIn().catch((error) => {
      const met = asProblem(error);
      if (met.code === "totp_required") {
        return onSecondFactor(met);
      }
      setProblem(met);
    }).finally(() => setBusy(false));
  }, []);
  return html`${problem && html`<p class="notice problem" role="alert">${sayProblem(problem.message)}</p>`}
    ${problem?.newWindow
      && html`<p><a class="button" href=${problem.newWindow} target="_blank" rel="noopener">${say("Open in a new window")}</a></p>`}
    ${offer.value.offered && html`<p><button type="button" class="main" disabled=${isBusy} onClick=${() => location.assign(loginURL)}>${
      say(isBusy ? "One moment" : "Sign in with your practice account")}</button></p>`}`;
}
