// Requests to the API under /api/v1/ with the session's bearer token. An access token is valid for fifteen minutes; an expired one is
// renewed once for all concurrent requests that are refused because of it.
import { problemOf, request } from "./request.js";
import * as session from "./session.js";
import { signal } from "./view.js";

export { Problem, Unreachable } from "./request.js";

/** The path of the last successful change; views that show the changed data subscribe to it. */
export const lastWrite = signal({ path: "" });

/** Reason for open emergency access to a record outside the caller's care teams; "" for none. Sent until the record is closed. */
let emergencyReason = "";

/** @param {string} reason for emergency access, "" to end it. Characters that a header cannot hold are replaced. */
export function setEmergencyReason(reason) {
  emergencyReason = reason.replace(/[^\x20-\x7e\xa0-\xff]+/g, " ").trim();
}

/** Writes that emergency access permits: readings, alerts and escalations. The server refuses other writes that carry the header. */
const emergencyWrites = /^(ingestion\/(?!quarantine\/)|ingestion\/quarantine\/[^/]+\/confirm\/|alerts\/|escalations\/)/;

/** Sends one request. @param {string} method @param {string} path below /api/v1/
 *  @param {{query?: Record<string, unknown>, body?: unknown, open?: boolean, headers?: Record<string, string>, signal?: AbortSignal,
 * credentials?: RequestCredentials}} [options]
 *  @returns {Promise<Response>} */
export async function send(method, path, { query = {}, body, open = false, headers = {}, signal, credentials } = {}) {
  const attempt = () => request(method, path, {
    query, body, signal, credentials, headers: { ...(open ? {} : session.bearer()),
      ...(emergencyReason && !open && (method === "GET" || emergencyWrites.test(path)) ? { "X-Emergency-Access": emergencyReason } : {}),
      ...headers },
  });
  let answer = await attempt();
  if (!open && (await refusesToken(answer)) && (await session.renew())) {
    answer = await attempt();
  }
  if (!answer.ok) {
    const ended = !open && (await refusesToken(answer));
    const problem = await problemOf(answer);
    if (ended) {
      session.end("Your session has ended. Sign in again.");
    }
    throw problem;
  }
  if (method !== "GET") {
    lastWrite.value = { path };
  }
  return answer;
}

/** Whether a response rejects the token. A wrong password, where reauthentication is required, does not. @param {Response} answer */
const refusesToken = async (answer) => answer.status === 401
  && (await answer.clone().json().catch(() => ({}))).code !== "authentication_failed";

/** @param {string} method @param {string} path @param {Parameters<typeof send>[2]} [options]
 *  @returns {Promise<any>} the decoded body; null for 204 */
export async function call(method, path, options = {}) {
  const answer = await send(method, path, options);
  return answer.status === 204 ? null : answer.json();
}

/** @param {string} path @param {Record<string, unknown>} [query] @param {AbortSignal} [signal] */
export const get = (path, query, signal) => call("GET", path, { query, signal });
/** @param {string} path @param {unknown} [body] */
export const post = (path, body = {}) => call("POST", path, { body });
/** @param {string} path @param {unknown} body */
export const put = (path, body) => call("PUT", path, { body });
/** @param {string} path @param {unknown} body */
export const patch = (path, body) => call("PATCH", path, { body });
/** @param {string} path */
export const remove = (path) => call("DELETE", path);

/** Loads all pages of a list that is known to be short. @param {string} path @param {Record<string, unknown>} [query]
 *  @param {number} [most] */
export async function getAll(path, query = {}, most = 500) {
  const results = [];
  for (let page = 1; ; page++) {
    const answer = await get(path, { ...query, page, page_size: 100 });
    results.push(...answer.results);
    if (!answer.next || results.length >= most) {
      return results;
    }
  }
}

/** Downloads a file. @param {string} path @param {Record<string, unknown>} query
 *  @param {string} name used when the server sends no file name */
export async function download(path, query, name) {
  const answer = await send("GET", path, { query });
  const named = /filename="?([^";]+)"?/.exec(answer.headers.get("Content-Disposition") ?? "");
  const url = URL.createObjectURL(await answer.blob());
  const link = Object.assign(document.createElement("a"), { href: url, download: named?.[1] ?? name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
