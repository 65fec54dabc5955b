// Which view is shown. The address names the view and nothing else: what it is about (a patient, an entry) stays in the
// history's state, so that no address, bookmark or browser history tells whom somebody looked at.
import { signal } from "./view.js";

/** @typedef {{view: string, about: Record<string, any>}} Place */

const home = { view: "", about: {} };

/** @returns {Place} */
const read = () => ({ view: location.hash.replace(/^#\/?/, ""), about: history.state?.about ?? {} });

/** Where we are. */
export const place = signal(/** @type {Place} */ (read()));

/** @param {string} view @param {Record<string, any>} [about] */
export function go(view, about = {}) {
  history.pushState({ about }, "", `#/${view}`);
  place.value = { view, about };
  scrollTo(0, 0);
}

/** Changes what the present view is about, without a new step back. @param {Record<string, any>} about */
export function refine(about) {
  const next = { ...place.value.about, ...about };
  history.replaceState({ about: next }, "", `#/${place.value.view}`);
  place.value = { view: place.value.view, about: next };
}

/** Back to nowhere, and nothing of the last person stays in the history's state. */
export function leave() {
  history.replaceState({ about: {} }, "", location.pathname);
  place.value = home;
}

addEventListener("popstate", () => { place.value = read(); });
