// Signing in with the practice's identity provider. The browser goes there and comes back with a code behind the #, which no server sees;
// the code is taken out of the address and its history at once, and is good once, for the cookie of the browser that began.
import { problemOf, request } from "./request.js";
import { leave } from "./router.js";
import { beginWith } from "./sign_on.js";

/** Where the browser goes; a page of the provider's. */
export const door = "/api/v1/auth/oidc/login/";

/** @returns {URLSearchParams | null} what the browser came back with */
function comeBack() {
  const query = /^#\/sign-on\?(.*)$/.exec(location.hash)?.[1];
  if (query === undefined) {
    return null;
  }
  leave({ forget: true });
  return new URLSearchParams(query);
}

/** What the browser came back with as this page was opened; taken by the first who asks. */
let returned = comeBack();

/** Ends the sign-in that the browser has come back from. @returns {Promise<boolean>} whether there was one */
export async function finish() {
  if (!returned) {
    return false;
  }
  const query = Object.fromEntries(returned);
  returned = null;
  await beginWith(async () => {
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
export async function offer() {
  const answer = await request("GET", "auth/oidc/");
  return answer.ok ? answer.json() : { offered: false, required: false };
}
