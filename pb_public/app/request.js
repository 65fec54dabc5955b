// One request to the API under /api/v1/, without a session.

/** An error response of the server. */
export class Problem extends Error {
  /** @param {number} status @param {{detail?: string, code?: string, field_errors?: Record<string, string[]>, locked_until?: string,
   * temporary_token?: string, methods?: string[], warnings?: string[], overlaps?: {id: number, user: number, user_name: string,
   * started_at: string, ended_at: string}}} body @param {number} wait seconds */
  constructor(status, body, wait = 0) {
    super(body.detail ?? "The server sent an unexpected response.");
    this.status = status;
    this.code = body.code ?? "";
    this.fields = body.field_errors ?? {};
    this.lockedUntil = body.locked_until;
    this.temporaryToken = body.temporary_token ?? "";
    this.methods = body.methods ?? [];
    this.overlaps = body.overlaps;
    this.warnings = body.warnings ?? []; // why the evidence does not support an entry
    this.wait = wait;
  }
  get forbidden() { return this.status === 403; }
}

/** No response: the network or the server is unavailable. */
export class Unreachable extends Problem {
  constructor() { super(0, { detail: "The server does not respond. Check the connection and try again.", code: "unreachable" }); }
}

const root = "/api/v1/";

/** @param {Record<string, unknown>} query */
function queryString(query) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return kept.length ? `?${new URLSearchParams(kept.map(([name, value]) => [name, String(value)]))}` : "";
}

/** Sends one request and returns the response, also an error. A text body is sent as CSV. @param {string} method
 *  @param {string} path below /api/v1/
 *  @param {{query?: Record<string, unknown>, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal,
 * credentials?: RequestCredentials}} [options]
 *  @returns {Promise<Response>} */
export const request = (method, path, { query = {}, body, headers = {}, signal, credentials = "omit" } = {}) =>
  fetch(root + path + queryString(query), {
  method, signal, cache: "no-store", credentials,
  headers: { ...(body === undefined ? {} : { "Content-Type": typeof body === "string" ? "text/csv" : "application/json" }), ...headers },
  body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
}).catch((error) => { throw error.name === "AbortError" ? error : new Unreachable(); });

/** The error of a response. @param {Response} answer */
export const problemOf = async (answer) => new Problem(answer.status, await answer.json().catch(() => ({})),
  Number(answer.headers.get("Retry-After") ?? 0));
