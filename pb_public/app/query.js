// Filters, page and order of a view, kept in the address so that going back restores them.
import { updateQuery, place } from "./router.js";
import { useCallback, useRef } from "./view.js";

/** @param {string} text @param {any} like */
const parseValue = (text, like) => (typeof like === "number" ? Number(text) || like : typeof like === "boolean" ? text === "true" : text);

/**
 * The query of the view and its setter. defaults lists every name with its default, which is not written to the address; numbers and
 * booleans are parsed. Names in hidden may identify a patient, such as a search: they are kept in memory, never in the address or in what
 * the browser stores. A change returns to the first page unless it sets the page.
 *
 *   const [query, change] = useQuery({ level: "", page: 1, search: "" }, ["search"]);
 *   change({ level: "critical" });
 *
 * @template {Record<string, any>} Q
 * @param {Q} defaults @param {string[]} [hidden]
 * @returns {[Q, (next: Partial<Q>) => void]}
 */
export function useQuery(defaults, hidden = []) {
  const latest = useRef({ defaults, hidden });
  latest.current = { defaults, hidden };
  const { query: visible, hidden: kept } = place.value;
  const query = /** @type {any} */ (Object.fromEntries(Object.entries(defaults).map(([name, value]) =>
    [name, hidden.includes(name) ? kept[name] ?? value : visible[name] === undefined ? value : parseValue(visible[name], value)])));
  const change = useCallback((/** @type {Partial<Q>} */ next) => {
    const { defaults: usual, hidden: secret } = latest.current;
    const open = Object.entries(next).filter(([name]) => !secret.includes(name))
      .map(([name, value]) => [name, value === undefined || value === usual[name] ? undefined : String(value)]);
    const pages = "page" in next ? [] : Object.keys(place.value.query).filter((name) => name === "page" || name.endsWith(".page"))
      .map((name) => [name, undefined]);
    updateQuery(Object.fromEntries([...pages, ...open]),
      Object.fromEntries(Object.entries(next).filter(([name]) => secret.includes(name))));
  }, []);
  return [query, change];
}
