// The signed-in user. Tokens are kept in the memory of pages only: nothing stays in the browser for the next user of the computer.
import { problemOf, request } from "./request.js";
import { signal } from "./view.js";

/** @typedef {{id: number, email: string, first_name: string, last_name: string, role: string, is_2fa_enabled: boolean,
 * has_passkeys?: boolean, must_change_password?: boolean, time_zone?: string, two_factor_due_at?: string}} Person */

/** @typedef {{access: string, refresh: string} | null} Tokens */

/** @type {Tokens} */
let tokens = null;
/** @type {Promise<boolean> | null} */
let renewal = null;

/** The signed-in user, or null. */
export const me = signal(/** @type {Person | null} */ (null));
/** The user's permissions and their scope, by the server's names. */
export const rights = signal(/** @type {Record<string, string>} */ ({}));
/** The patients of a portal user, the own first; empty for the staff. */
export const myPatients = signal(/** @type {{id: string, first_name: string | null, last_name: string | null, scope: string}[]} */ ([]));
/** Settings of the practice. */
export const practice = signal({ name: "", time_zone: "", sends_reports: false,
  portal_advice: /** @type {Record<string, string>} */ ({}) });
/** The user's display settings. */
export const display = signal({ weight_unit: "kg", temperature_unit: "C", single_keys: true });
/** Why the last session ended, for the sign-in page. */
export const endReason = signal("");
/** Counts renewals; the live stream reconnects after each. */
export const renewals = signal(0);

/** @returns {Record<string, string>} */
export const bearer = () => (tokens ? { Authorization: `Bearer ${tokens.access}` } : {});
export const accessToken = () => tokens?.access ?? "";
export const refreshToken = () => tokens?.refresh;
/** @param {...string} roles */
export const hasRole = (...roles) => me.value !== null && roles.includes(me.value.role);

/** Callbacks to the other tabs of the session.
 *  @type {{renew: (() => Promise<boolean>) | null, changed: (now: Tokens, how: "begun" | "renewed" | "taken") => void,
 * ended: (reason: string) => void}} */
export const otherTabs = { renew: null, changed: () => {}, ended: () => {} };

/** The session's tokens, for a tab that shares it. */
export const tokensHeld = () => tokens;

/** Sets the tokens of a sign-in or of another tab; null clears them. @param {Tokens} brought
 *  @param {"begun" | "taken"} [how] */
export function setTokens(brought, how = "begun") {
  const had = tokens !== null;
  tokens = brought;
  otherTabs.changed(tokens, how);
  if (had && brought) {
    renewals.value++;
  }
}

/** Renews the tokens; concurrent callers share one request. @returns {Promise<boolean>} whether there is a fresh access token */
export function renew() {
  renewal ??= (otherTabs.renew ?? refreshTokens)().finally(() => { renewal = null; });
  return renewal;
}

/** Renews the tokens in this tab. */
export async function refreshTokens() {
  if (!tokens) {
    return false;
  }
  const used = tokens;
  const answer = await request("POST", "auth/token/refresh/", { body: { refresh: used.refresh } });
  if (answer.status === 401) {
    return false;
  }
  if (!answer.ok) {
    throw await problemOf(answer);
  }
  const fresh = await answer.json();
  if (tokens !== used) {
    return tokens !== null; // the session has ended, and must not come back
  }
  tokens = fresh;
  otherTabs.changed(tokens, "renewed");
  renewals.value++;
  return true;
}

/** Ends the session in this tab. @param {string} reason for the sign-in page @param {boolean} [here] false when another tab ended it */
export function end(reason = "", here = true) {
  if (tokens) {
    tokens = null;
    me.value = null;
    endReason.value = reason;
    otherTabs.changed(null, "taken");
    if (here) {
      otherTabs.ended(reason);
    }
  }
}
