// Who is signed in. Tokens live in this module's memory and nowhere else: a reload signs off, and nothing is left in the
// browser for the next person at the desk.
import { problemOf, request } from "./request.js";
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
export const refreshToken = () => tokens?.refresh;
/** @param {...string} roles */
export const is = (...roles) => me.value !== null && roles.includes(me.value.role);

/** Begins a session with what signing in brought; null takes it back. @param {typeof tokens} brought */
export const hold = (brought) => { tokens = brought; };

/** Swaps the refresh token; concurrent callers share one swap. @returns {Promise<boolean>} whether there is a fresh access token */
export function renew() {
  renewal ??= swap().finally(() => { renewal = null; });
  return renewal;
}

async function swap() {
  if (!tokens) {
    return false;
  }
  const answer = await request("POST", "auth/token/refresh/", { body: { refresh: tokens.refresh } });
  if (answer.status === 401) {
    return false;
  }
  if (!answer.ok) {
    throw await problemOf(answer);
  }
  tokens = await answer.json();
  renewals.value++;
  return true;
}

/** Forgets everything. @param {string} reason for the sign-in page */
export function end(reason = "") {
  if (tokens) {
    tokens = null;
    me.value = null;
    farewell.value = reason;
  }
}
