// Who is signed in. Tokens live in this module's memory and nowhere else: a reload signs off, and nothing is left in the
// browser for the next person at the desk.
import { call, Problem } from "./api.js";
import { signal } from "./view.js";

/** @typedef {{id: number, email: string, first_name: string, last_name: string, role: string, is_2fa_enabled: boolean, has_passkeys?: boolean, must_change_password?: boolean, time_zone?: string}} Person */

/** @type {{access: string, refresh: string} | null} */
let tokens = null;
/** @type {Promise<boolean> | null} */
let renewal = null;

/** The person signed in, or null. */
export const me = signal(/** @type {Person | null} */ (null));
/** Why the last session ended, to be said on the sign-in page. */
export const farewell = signal("");
/** Counts renewals, for those who hold a stream open under the old token. */
export const renewals = signal(0);

/** @returns {Record<string, string>} */
export const bearer = () => (tokens ? { Authorization: `Bearer ${tokens.access}` } : {});
export const accessToken = () => tokens?.access ?? "";
/** @param {...string} roles */
export const is = (...roles) => me.value !== null && roles.includes(me.value.role);

/** Signs in; a second factor that is missing or wrong is a Problem with its code. @param {{email: string, password: string, totp_code?: string, backup_code?: string}} proof */
export const begin = (proof) => open("auth/login/", proof);

/** Signs in with what the browser made of a passkey. @param {{temporary_token?: string, credential: any}} use */
export const beginWithPasskey = (use) => open("auth/passkeys/authenticate/", use);

/** @param {string} path @param {any} body */
async function open(path, body) {
  tokens = await call("POST", path, { body, open: true });
  try {
    await learn();
  } catch (error) {
    tokens = null;
    throw error;
  }
  farewell.value = "";
}

/** Reads the profile anew. */
export async function learn() {
  me.value = await call("GET", "auth/profile/");
}

/** Swaps the refresh token; concurrent callers share one swap. @returns {Promise<boolean>} whether there is a fresh access token */
export function renew() {
  renewal ??= swap().finally(() => { renewal = null; });
  return renewal;
}

async function swap() {
  if (!tokens) {
    return false;
  }
  try {
    tokens = await call("POST", "auth/token/refresh/", { body: { refresh: tokens.refresh }, open: true });
    renewals.value++;
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) {
      return false;
    }
    throw error;
  }
}

/** Forgets everything. @param {string} reason for the sign-in page */
export function end(reason = "") {
  if (tokens) {
    tokens = null;
    me.value = null;
    farewell.value = reason;
  }
}

/** Signs off here and at the service. */
export async function signOff(reason = "You have signed off.") {
  const refresh = tokens?.refresh;
  try {
    await call("POST", "auth/logout/", { body: { refresh } });
  } catch {
    // The token runs out by itself; signing off here must not wait for the network.
  }
  end(reason);
}
