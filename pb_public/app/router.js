// Where the console is. The address names the view and how it is looked at (filters, page, tab); what it is about (a patient, an entry, by
// id) stays in the history's state, so that no address or bookmark tells whom somebody looked at; what names somebody (a search) stays in
// memory.
import { me } from "./session.js";
import { signal } from "./view.js";

/** @typedef {{view: string, about: Record<string, any>, query: Record<string, string>, hidden: Record<string, any>}} Place
 *  hidden is a part of the query that names somebody */

/** @type {Place} */
const home = { view: "", about: {}, query: {}, hidden: {} };

/** What of a step names somebody, by a random word that the step has: browsers write the history's state to the disk.
 *  @type {Map<string, Record<string, any>>} */
let names = new Map();

/** @param {Record<string, any>} hidden @param {string | null} [word] that of the step */
function conceal(hidden, word) {
  if (Object.keys(hidden).length === 0) {
    return null;
  }
  const kept = word ?? crypto.getRandomValues(new Uint32Array(2)).join("-");
  names.set(kept, hidden);
  return kept;
}

/** What the page that comes after a reload needs to find the same. */
export const namesHeld = () => [...names];

/** Goes on with what the page before a reload held. @param {[string, Record<string, any>][]} held */
export function takeNames(held) {
  names = new Map(held);
  place.value = read();
}

/** @returns {Place} */
function read() {
  const [view, search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const { about = {}, hidden } = history.state ?? {};
  return { view, about, query: Object.fromEntries(new URLSearchParams(search)), hidden: names.get(hidden) ?? {} };
}

/** Where we are. */
export const place = signal(read());

/** What is remembered of each step beside its place: how far it was scrolled, and what had the focus. */
const fresh = { scroll: 0, focus: /** @type {string | null} */ (null), hidden: /** @type {string | null} */ (null) };

/** @param {Pick<Place, "view" | "query">} where */
const address = ({ view, query }) => `#/${view}${Object.keys(query).length > 0 ? `?${new URLSearchParams(query)}` : ""}`;
/** @param {Place} next @param {typeof fresh} [at] */
const state = ({ about, hidden }, at = history.state) =>
  ({ about, hidden: conceal(hidden, at?.hidden), whose: me.peek()?.id, scroll: at?.scroll ?? 0, focus: at?.focus ?? null });

/** @param {Place} next */
function replace(next) {
  history.replaceState(state(next), "", address(next));
  place.value = next;
}

/** A step on, to another view or another thing. hidden is the part of the query that names somebody.
 *  @param {string} view @param {Record<string, any>} [about] @param {Record<string, string>} [query]
 *  @param {Record<string, any>} [hidden] */
export function go(view, about = {}, query = {}, hidden = {}) {
  remember();
  const next = { view, about, query, hidden };
  history.pushState(state(next, fresh), "", address(next));
  place.value = next;
  scrollTo(0, 0);
}

/** Changes what the present view is about, without a new step back. @param {Record<string, any>} about */
export function refine(about) {
  replace({ ...place.value, about: { ...place.value.about, ...about } });
}

/** Changes how the present view is looked at, without a new step back; undefined takes a name out. What is hidden never stands in the
 * address.
 *  @param {Record<string, string | undefined>} query @param {Record<string, any>} [hidden] */
export function ask(query, hidden = {}) {
  const asked = Object.entries({ ...place.value.query, ...query });
  const kept = /** @type {[string, string][]} */ (asked.filter(([, value]) => value !== undefined));
  const next = { ...place.value, query: Object.fromEntries(kept), hidden: { ...place.value.hidden, ...hidden } };
  if (address(next) !== address(place.value) || Object.keys(hidden).length > 0) {
    replace(next);
  }
}

/** Where somebody was when their session ended, who may come back to it: in memory only. @type {{whose: number, place: Place} | null} */
let left = null;

/** Back to nowhere, and nothing of the last person stays in the history's state.
 *  @param {{forget?: boolean}} [options] forget says that nobody comes back */
export function leave({ forget = false } = {}) {
  const whose = history.state?.whose;
  if (whose && place.peek().view) {
    left = { whose, place: place.peek() };
  }
  if (forget) {
    left = null;
    names.clear();
  }
  history.replaceState(null, "", location.pathname);
  place.value = home;
}

/** Goes back to where the person was when their session ended; nobody else gets there. @param {number} id */
export function comeBackAs(id) {
  const was = left;
  left = null;
  if (was && was.whose !== id) {
    names.clear();
  }
  if (was?.whose === id && place.peek().view === "") {
    replace(was.place);
  } else {
    keepOut(id);
    history.replaceState({ ...history.state, whose: id }, "");
  }
}

/** A step of somebody else leads nowhere. @param {number} id who is here */
function keepOut(id) {
  if ((history.state?.whose ?? id) !== id) {
    history.replaceState({ whose: id }, "", location.pathname);
    place.value = home;
  }
}

/** Notes on the present step how far it is scrolled and what has the focus. */
export function remember() {
  if (history.state) {
    history.replaceState({ ...history.state, scroll: scrollY, focus: focused() }, "");
  }
}

/** The thing whose row or card has the focus, by its key. */
const focused = () => keyOf(document.activeElement?.closest(keyed) ?? null);

const keyed = "[data-key], [data-id]";
/** @param {Element | null} row */
const keyOf = (row) => row?.getAttribute("data-key") ?? row?.getAttribute("data-id") ?? null;

/** Scrolls to where this step was left, as soon as the page is long enough again, and gives the focus back to the row that had it. Whoever
 *  scrolls or types meanwhile is left alone. */
function comeBack() {
  const { scroll = 0, focus = null } = history.state ?? {};
  const watch = new ResizeObserver(() => {
    const row = focus && [...document.querySelectorAll(keyed)].find((one) => keyOf(one) === focus);
    if (document.documentElement.scrollHeight < scroll + innerHeight || (focus && !row && document.querySelector(".state.waiting"))) {
      return; // still loading
    }
    stop();
    const own = row && row.matches("[tabindex], button, a");
    const target = /** @type {HTMLElement | null | undefined} */ (own ? row : row && row.querySelector("button, a, [tabindex]"));
    if (target && (document.activeElement === document.body || document.activeElement?.id === "main")) {
      target.focus({ preventScroll: true });
    }
    scrollTo(0, scroll);
  });
  const stop = () => { watch.disconnect(); touched.forEach((sign) => removeEventListener(sign, stop, true)); };
  const touched = ["wheel", "touchstart", "keydown", "pointerdown"];
  touched.forEach((sign) => addEventListener(sign, stop, { capture: true, passive: true }));
  watch.observe(document.body);
}

history.scrollRestoration = "manual";
let waiting = 0;
addEventListener("scroll", () => { // for a step back, which says so only when it is done
  clearTimeout(waiting);
  waiting = setTimeout(remember, 100);
}, { passive: true });
addEventListener("focusin", () => { clearTimeout(waiting); waiting = setTimeout(remember, 100); });
addEventListener("popstate", () => {
  clearTimeout(waiting);
  place.value = read();
  const here = me.peek();
  if (here) {
    keepOut(here.id);
  }
  comeBack();
});
