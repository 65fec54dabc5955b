// The states of every view (loading, empty, failed, forbidden), and the hook that loads data.
import { Problem } from "../api.js";
import { html, useCallback, useEffect, useRef, useState } from "../view.js";
import { say, sayProblem } from "../language.js";

export const Waiting = () =>
  html`<p class="state waiting" role="status"><span class="spinner" aria-hidden="true"></span> ${say("Loading")}</p>`;

/** The empty state; page: it is the only content of the page.
 *  @param {{title: string, page?: boolean, children?: any}} props */
export const EmptyState = ({ title, page, children }) => html`<div class="state empty">
  ${page ? html`<h1>${title}</h1>` : html`<h2>${title}</h2>`}${children && html`<p>${children}</p>`}</div>`;

/** @param {{problem: Problem, retry?: () => void}} props */
export function Failed({ problem, retry }) {
  if (problem.forbidden) {
    return html`<div class="state forbidden"><h2>Not for your role</h2><p>${problem.message} Contact an administrator if you need
      access.</p></div>`;
  }
  return html`<div class="state failed" role="alert"><h2>${say("Could not load this page")}</h2><p>${sayProblem(problem.message)}</p>
    ${retry && html`<button onClick=${retry}>${say("Try again")}</button>`}</div>`;
}

/**
 * Loads data and keeps it; load is called again when a dependency changes or reload is called. The old data stays visible while new data
 * loads.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} dependencies
 * @returns {{data: T | null, problem: Problem | null, loading: boolean, reload: () => void, change: (next: (data: T) => T) => void}}
 */
export function useLoad(load, dependencies) {
  const [state, setState] = useState(/** @type {{data: any, problem: Problem | null, loading: boolean}} */ ({ data: null, problem: null,
    loading: true }));
  const [revision, setRevision] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const cancel = new AbortController();
    setState((was) => ({ ...was, loading: true }));
    latest.current(cancel.signal).then(
      (data) => cancel.signal.aborted || setState({ data, problem: null, loading: false }),
      (error) => cancel.signal.aborted || setState((was) => ({ ...was, problem: asProblem(error), loading: false })),
    );
    return () => cancel.abort();
  }, [...dependencies, revision]);
  const reload = useCallback(() => setRevision((n) => n + 1), []);
  const change = useCallback((step) => setState((was) => (was.data === null ? was : { ...was, data: step(was.data) })), []);
  return { ...state, reload, change };
}

/** @param {any} error @returns {Problem} */
export function asProblem(error) {
  if (error instanceof Problem) {
    return error;
  }
  console.error(error);
  return new Problem(0, { detail: "Something went wrong. Reload the page." });
}

/** Renders the state of a useLoad.
 *  @param {{from: ReturnType<typeof useLoad>, empty?: (data: any) => boolean, nothing?: any, children: (data: any) => any}} props */
export function Loaded({ from, empty, nothing, children }) {
  if (from.problem && (from.data === null || from.problem.forbidden)) {
    return html`<${Failed} problem=${from.problem} retry=${from.reload} />`;
  }
  if (from.data === null) {
    return html`<${Waiting} />`;
  }
  const stale = from.problem && html`<p class="notice warning" role="alert">${from.problem.message} This data may be out of date.
    <button class="quiet" onClick=${from.reload}>Try again</button></p>`;
  return html`${stale}${empty?.(from.data) ? nothing : children(from.data)}`;
}
