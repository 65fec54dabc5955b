// Sign-in with the practice's identity provider. The browser returns with a code behind the #, which no server receives. The code is
// removed from the address and the history immediately; it works once, with the cookie of the same browser.
import { problemOf, request } from "./request.js";
import { clearPlace } from "./router.js";
import { startSession } from "./sign_on.js";

/** The address that redirects to the provider. */
export const loginURL = "/api/v1/auth/oidc/login/";

/** @returns {URLSearchParams | null} the parameters of the provider's redirect */
function readRedirect() {
  const query = /^#\/sign-on\?(.*)$/.exec(location.hash)?.[1];
  if (query === undefined) {
    return null;
  }
  clearPlace({ isFinal: true });
  return new URLSearchParams(query);
}

/** The parameters with which this page was opened; used once. */
let redirectParameters = readRedirect();

/** Completes the sign-in after the provider's redirect. @returns {Promise<boolean>} whether there was one */
export async function completeSignIn() {
  if (!redirectParameters) {
    return false;
  }
  const query = Object.fromEntries(redirectParameters);
  redirectParameters = null;
  await startSession(async () => {
    const answer = await request("GET", "auth/oidc/callback/", { query, headers: { Accept: "application/json" },
      credentials: "same-origin" });
    if (!answer.ok) {
      throw await problemOf(answer);
    }
    return answer.json();
  });
  return true;
}

/** @returns {Promise<{offered: boolean, required: boolean}>} */
export async function loadOffer() {
  const answer = await request("GET", "auth/oidc/");
  return answer.ok ? answer.json() : { offered: false, required: false };
}
