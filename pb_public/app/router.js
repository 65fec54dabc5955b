// The current place. The address names the view and its query (filters, page, tab). Ids (a patient, an entry) stay in the history's state,
// so that no address or bookmark shows which patient was opened. Parts of the query that identify a patient (a search) stay in memory.
import { me } from "./session.js";
import { signal } from "./view.js";

/** @typedef {{view: string, about: Record<string, any>, query: Record<string, string>, hidden: Record<string, any>}} Place
 *  hidden is the part of the query that identifies a patient */

/** @type {Place} */
const home = { view: "", about: {}, query: {}, hidden: {} };

/** The hidden part of each step by a random token in the history's state, which browsers write to the disk.
 *  @type {Map<string, Record<string, any>>} */
let hiddenParts = new Map();

/** @param {Record<string, any>} hidden @param {string | null} [word] the token of the step */
function storeHidden(hidden, word) {
  if (Object.keys(hidden).length === 0) {
    return null;
  }
  const kept = word ?? crypto.getRandomValues(new Uint32Array(2)).join("-");
  hiddenParts.set(kept, hidden);
  return kept;
}

/** The hidden parts, for the page after a reload. */
export const hiddenEntries = () => [...hiddenParts];

/** Restores the hidden parts from before a reload. @param {[string, Record<string, any>][]} held */
export function restoreHidden(held) {
  hiddenParts = new Map(held);
  place.value = read();
}

/** @returns {Place} */
function read() {
  const [view, search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const { about = {}, hidden } = history.state ?? {};
  return { view, about, query: Object.fromEntries(new URLSearchParams(search)), hidden: hiddenParts.get(hidden) ?? {} };
}

/** The current place. */
export const place = signal(read());

/** What each step stores in addition to its place: scroll position and focus. */
const newStep = { scroll: 0, focus: /** @type {string | null} */ (null), hidden: /** @type {string | null} */ (null) };

/** @param {Pick<Place, "view" | "query">} where */
const address = ({ view, query }) => `#/${view}${Object.keys(query).length > 0 ? `?${new URLSearchParams(query)}` : ""}`;
/** @param {Place} next @param {typeof newStep} [at] */
const state = ({ about, hidden }, at = history.state) =>
  ({ about, hidden: storeHidden(hidden, at?.hidden), owner: me.peek()?.id, scroll: at?.scroll ?? 0, focus: at?.focus ?? null });

/** @param {Place} next */
function replace(next) {
  history.replaceState(state(next), "", address(next));
  place.value = next;
}

/** Opens another view or record as a new step. hidden is the part of the query that identifies a patient.
 *  @param {string} view @param {Record<string, any>} [about] @param {Record<string, string>} [query]
 *  @param {Record<string, any>} [hidden] */
export function go(view, about = {}, query = {}, hidden = {}) {
  saveScroll();
  const next = { view, about, query, hidden };
  history.pushState(state(next, newStep), "", address(next));
  place.value = next;
  scrollTo(0, 0);
}

/** Changes the ids of the current view without a new step. @param {Record<string, any>} about */
export function updateAbout(about) {
  replace({ ...place.value, about: { ...place.value.about, ...about } });
}

/** Changes the query of the current view without a new step; undefined removes a name. hidden is never written to the address.
 *  @param {Record<string, string | undefined>} query @param {Record<string, any>} [hidden] */
export function updateQuery(query, hidden = {}) {
  const merged = Object.entries({ ...place.value.query, ...query });
  const kept = /** @type {[string, string][]} */ (merged.filter(([, value]) => value !== undefined));
  const next = { ...place.value, query: Object.fromEntries(kept), hidden: { ...place.value.hidden, ...hidden } };
  if (address(next) !== address(place.value) || Object.keys(hidden).length > 0) {
    replace(next);
  }
}

/** The place where a session ended, to return to after sign-in: in memory only. @type {{owner: number, place: Place} | null} */
let endedPlace = null;

/** Resets the place and clears the history's state of the last user.
 *  @param {{isFinal?: boolean}} [options] isFinal: no return after sign-in */
export function clearPlace({ isFinal = false } = {}) {
  const owner = history.state?.owner;
  if (owner && place.peek().view) {
    endedPlace = { owner, place: place.peek() };
  }
  if (isFinal) {
    endedPlace = null;
    hiddenParts.clear();
  }
  history.replaceState(null, "", location.pathname);
  place.value = home;
}

/** Returns to the place where this user's session ended; no other user can. @param {number} id */
export function restorePlace(id) {
  const was = endedPlace;
  endedPlace = null;
  if (was && was.owner !== id) {
    hiddenParts.clear();
  }
  if (was?.owner === id && place.peek().view === "") {
    replace(was.place);
  } else {
    rejectForeignStep(id);
    history.replaceState({ ...history.state, owner: id }, "");
  }
}

/** Rejects a history step of another user. @param {number} id of the signed-in user */
function rejectForeignStep(id) {
  if ((history.state?.owner ?? id) !== id) {
    history.replaceState({ owner: id }, "", location.pathname);
    place.value = home;
  }
}

/** Stores scroll position and focus in the current step. */
export function saveScroll() {
  if (history.state) {
    history.replaceState({ ...history.state, scroll: scrollY, focus: focusedKey() }, "");
  }
}

/** The key of the row or card that has the focus. */
const focusedKey = () => keyOf(document.activeElement?.closest(keyedSelector) ?? null);

const keyedSelector = "[data-key], [data-id]";
/** @param {Element | null} row */
const keyOf = (row) => row?.getAttribute("data-key") ?? row?.getAttribute("data-id") ?? null;

/** Restores the step's scroll position as soon as the page is long enough, and the focus of its row. Stops if the user scrolls or types
 *  before that. */
function restoreScroll() {
  const { scroll = 0, focus = null } = history.state ?? {};
  const watch = new ResizeObserver(() => {
    const row = focus && [...document.querySelectorAll(keyedSelector)].find((one) => keyOf(one) === focus);
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
addEventListener("scroll", () => { // popstate comes too late to store the position
  clearTimeout(waiting);
  waiting = setTimeout(saveScroll, 100);
}, { passive: true });
addEventListener("focusin", () => { clearTimeout(waiting); waiting = setTimeout(saveScroll, 100); });
addEventListener("popstate", () => {
  clearTimeout(waiting);
  place.value = read();
  const here = me.peek();
  if (here) {
    rejectForeignStep(here.id);
  }
  restoreScroll();
});
