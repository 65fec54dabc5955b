// Who is signed in. Tokens live in the memory of pages and nowhere else: nothing is left in the browser for the next person at the desk.
import { problemOf, request } from "./request.js";
import { signal } from "./view.js";

/** @typedef {{id: number, email: string, first_name: string, last_name: string, role: string, is_2fa_enabled: boolean,
 * has_passkeys?: boolean, must_change_password?: boolean, time_zone?: string}} Person */

/** @typedef {{access: string, refresh: string} | null} Tokens */

/** @type {Tokens} */
let tokens = null;
/** @type {Promise<boolean> | null} */
let renewal = null;

/** The person signed in, or null. */
export const me = signal(/** @type {Person | null} */ (null));
/** What the person may do and how far, by the service's names. */
export const rights = signal(/** @type {Record<string, string>} */ ({}));
/** What is the practice's, as the service says it. */
export const practice = signal({ name: "", time_zone: "" });
/** How things are shown to the person. */
export const display = signal({ weight_unit: "kg", temperature_unit: "C", single_keys: true });
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

/** How other tabs with the same session take part; alone, none does.
 *  @type {{renew: (() => Promise<boolean>) | null, changed: (now: Tokens, how: "begun" | "renewed" | "taken") => void,
 * ended: (reason: string) => void}} */
export const others = { renew: null, changed: () => {}, ended: () => {} };

/** What the session is held with, for a tab that shares it. */
export const tokensHeld = () => tokens;

/** Begins a session with what signing in brought, or takes what another tab has; null takes it back. @param {Tokens} brought
 *  @param {"begun" | "taken"} [how] */
export function hold(brought, how = "begun") {
  const had = tokens !== null;
  tokens = brought;
  others.changed(tokens, how);
  if (had && brought) {
    renewals.value++;
  }
}

/** Swaps the refresh token; concurrent callers share one swap. @returns {Promise<boolean>} whether there is a fresh access token */
export function renew() {
  renewal ??= (others.renew ?? swap)().finally(() => { renewal = null; });
  return renewal;
}

/** Swaps it in this tab. */
export async function swap() {
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
  others.changed(tokens, "renewed");
  renewals.value++;
  return true;
}

/** Forgets everything. @param {string} reason for the sign-in page @param {boolean} [here] that it was ended elsewhere is no news there */
export function end(reason = "", here = true) {
  if (tokens) {
    tokens = null;
    me.value = null;
    farewell.value = reason;
    others.changed(null, "taken");
    if (here) {
      others.ended(reason);
    }
  }
}
