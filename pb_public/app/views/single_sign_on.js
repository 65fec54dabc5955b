// Sign-in with the practice's identity provider, if configured.
import { Problem } from "../api.js";
import { door, finish, offer } from "../single_sign_on.js";
import { asProblem } from "../ui/states.js";
import { html, useEffect, useState } from "../view.js";

/** @param {{ask: (problem: Problem) => void}} props ask is called if a second factor is required in addition */
export function SingleSignOn({ ask }) {
  const [offered, set] = useState(false);
  const [busy, work] = useState(false);
  const [problem, fail] = useState(/** @type {Problem | null} */ (null));
  useEffect(() => {
    offer().then((about) => set(about.offered), () => {}); // the password form shows connection errors
    work(true);
    finish().catch((error) => {
      const met = asProblem(error);
      if (met.code === "totp_required") {
        return ask(met);
      }
      fail(met);
    }).finally(() => work(false));
  }, []);
  return html`${problem && html`<p class="notice problem" role="alert">${problem.message}</p>`}
    ${offered && html`<p><button type="button" class="main" disabled=${busy} onClick=${() => location.assign(door)}>${
      busy ? "One moment" : "Sign in with your practice account"}</button></p>`}`;
}
