// Beginning and ending a session at the service.
import { call } from "./api.js";
import { closeDrafts, openDrafts } from "./drafts.js";
import { leave } from "./router.js";
import { display, end, farewell, hold, me, practice, refreshToken, rights } from "./session.js";
import { batch, effect } from "./view.js";

effect(() => {
  if (me.value === null) {
    closeDrafts();
  }
});

/** Signs in; a second factor that is missing or wrong is a Problem with its code.
 *  @param {{email: string, password: string, totp_code?: string, backup_code?: string}} proof */
export const begin = (proof) => open("auth/login/", proof);

/** Signs in with what the browser made of a passkey. @param {{temporary_token?: string, credential: any}} use */
export const beginWithPasskey = (use) => open("auth/passkeys/authenticate/", use);

/** Signs in with the code that follows the practice's identity provider.
 *  @param {{temporary_token: string, totp_code?: string, backup_code?: string}} proof */
export const beginWithStep = (proof) => open("auth/oidc/verify/", proof);

/** @param {string} path @param {any} body */
const open = (path, body) => beginWith(() => call("POST", path, { body, open: true }));

/** Signs in with the tokens that something brings. @param {() => Promise<{access: string, refresh: string}>} bring */
export async function beginWith(bring) {
  hold(await bring());
  try {
    await learn();
  } catch (error) {
    hold(null);
    throw error;
  }
  farewell.value = "";
}

/** Reads anew who is signed in, and what the console has to know about them. */
export async function learn() {
  const [person, about] = await Promise.all([call("GET", "auth/profile/"), call("GET", "auth/me/")]);
  await openDrafts(about.draft_key);
  batch(() => {
    rights.value = about.permissions;
    practice.value = about.practice;
    display.value = about.display;
    me.value = person;
  });
}

/** Signs off here and at the service. @param {string} [reason]
 *  @param {{back?: boolean}} [options] back says that who signs in again goes on where they were */
export async function signOff(reason = "You have signed off.", { back = false } = {}) {
  const refresh = refreshToken();
  try {
    await call("POST", "auth/logout/", { body: { refresh } });
  } catch {
    // The token runs out by itself; signing off here must not wait for the network.
  }
  end(reason);
  if (!back) {
    leave({ forget: true });
  }
}
