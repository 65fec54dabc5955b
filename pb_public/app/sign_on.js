// Starts and ends a session at the server.
import { call } from "./api.js";
import { closeDrafts, openDrafts } from "./drafts.js";
import { clearPlace } from "./router.js";
import { display, end, endReason, setTokens, me, myPatients, practice, refreshToken, rights, tokensHeld } from "./session.js";
import { batch, effect } from "./view.js";

effect(() => {
  if (me.value === null) {
    closeDrafts();
  }
});

/** Signs in; a missing or wrong second factor throws a Problem with its code.
 *  @param {{email: string, password: string, totp_code?: string, backup_code?: string}} proof */
export const signIn = (proof) => signInAt("auth/login/", proof);

/** Signs in with a passkey credential. @param {{temporary_token?: string, credential: any}} use */
export const signInWithCredential = (use) => signInAt("auth/passkeys/authenticate/", use);

/** Signs in with the second factor after the practice's identity provider.
 *  @param {{temporary_token: string, totp_code?: string, backup_code?: string}} proof */
export const signInWithSecondFactor = (proof) => signInAt("auth/oidc/verify/", proof);

/** @param {string} path @param {any} body */
const signInAt = (path, body) => startSession(() => call("POST", path, { body, open: true }));

/** Starts a session with the tokens that bring returns. @param {() => Promise<{access: string, refresh: string}>} bring */
export async function startSession(bring) {
  setTokens(await bring());
  try {
    await loadProfile();
  } catch (error) {
    setTokens(null);
    throw error;
  }
  endReason.value = "";
}

/** Loads the user's profile, permissions and settings. */
export async function loadProfile() {
  const [person, about] = await Promise.all([call("GET", "auth/profile/"), call("GET", "auth/me/")]);
  await openDrafts(about.draft_key);
  if (!tokensHeld()) {
    return; // the session has ended
  }
  batch(() => {
    rights.value = about.permissions;
    practice.value = about.practice;
    display.value = about.display;
    myPatients.value = about.patients ?? [];
    me.value = person;
  });
}

/** Signs out in this browser and at the server. @param {string} [reason]
 *  @param {{back?: boolean}} [options] back: after sign-in the user returns to the same place */
export async function signOut(reason = "You have signed out.", { back = false } = {}) {
  const refresh = refreshToken();
  try {
    await call("POST", "auth/logout/", { body: { refresh } });
  } catch {
    // The token expires automatically; signing out must not wait for the network.
  }
  end(reason);
  if (!back) {
    clearPlace({ isFinal: true });
  }
}
