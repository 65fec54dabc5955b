// The one way to the service: the contract under /api/v1/, with the session's bearer token. An access token lives for
// fifteen minutes; one that has run out is renewed once, for all requests that meet it at the same time.
import { problemOf, request } from "./request.js";
import * as session from "./session.js";
import { signal } from "./view.js";

export { Problem, Unreachable } from "./request.js";

/** The path of the last change that the service took, for those who show what it is about. */
export const written = signal({ path: "" });

/** Why a record outside the caller's care teams is open; "" when none is. Sent along until the record is left. */
let emergencyReason = "";

/** @param {string} reason of an emergency access, "" to end it. A header holds no other characters. */
export function emergency(reason) {
  emergencyReason = reason.replace(/[^\x20-\x7e\xa0-\xff]+/g, " ").trim();
}

/** What an emergency opens besides reading: readings, alerts and escalations. Other writes are refused with its header. */
const helps = /^(ingestion\/(?!quarantine\/)|ingestion\/quarantine\/[^/]+\/confirm\/|alerts\/|escalations\/)/;

/** Sends one request. @param {string} method @param {string} path below /api/v1/
 *  @param {{query?: Record<string, unknown>, body?: unknown, open?: boolean, headers?: Record<string, string>, signal?: AbortSignal}}
 * [options]
 *  @returns {Promise<Response>} */
export async function send(method, path, { query = {}, body, open = false, headers = {}, signal } = {}) {
  const attempt = () => request(method, path, {
    query, body, signal, headers: { ...(open ? {} : session.bearer()),
      ...(emergencyReason && !open && (method === "GET" || helps.test(path)) ? { "X-Emergency-Access": emergencyReason } : {}),
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
    written.value = { path };
  }
  return answer;
}

/** Whether an answer is about the token. A wrong password, where one is asked for again, is none. @param {Response} answer */
const refusesToken = async (answer) => answer.status === 401
  && (await answer.clone().json().catch(() => ({}))).code !== "authentication_failed";

/** @param {string} method @param {string} path @param {Parameters<typeof send>[2]} [options]
 *  @returns {Promise<any>} the decoded body, null for 204 */
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

/** All pages of a list, for lists that are short by nature. @param {string} path @param {Record<string, unknown>} [query]
 *  @param {number} [most] */
export async function all(path, query = {}, most = 500) {
  const results = [];
  for (let page = 1; ; page++) {
    const answer = await get(path, { ...query, page, page_size: 100 });
    results.push(...answer.results);
    if (!answer.next || results.length >= most) {
      return results;
    }
  }
}

/** Fetches a file and hands it to the browser to keep. @param {string} path @param {Record<string, unknown>} query
 *  @param {string} name when the service names none */
export async function download(path, query, name) {
  const answer = await send("GET", path, { query });
  const named = /filename="?([^";]+)"?/.exec(answer.headers.get("Content-Disposition") ?? "");
  const url = URL.createObjectURL(await answer.blob());
  const link = Object.assign(document.createElement("a"), { href: url, download: named?.[1] ?? name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
