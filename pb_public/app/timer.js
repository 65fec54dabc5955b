// The timer of the person who is signed in: one at a time, for whichever patient, in sight on every page. It offers itself when a call or
// the work on a chart begins; views start it with startTimer.
import { get, post, Problem, written } from "./api.js";
import { can } from "./can.js";
import { place } from "./router.js";
import { me } from "./session.js";
import { asProblem } from "./ui/states.js";
import { toast } from "./ui/toast.js";
import { effect, signal } from "./view.js";

/** @typedef {{id: number, patient_id: string, patient_name: string, category: string, activity: string | null, started_at: string,
 *  notes: string | null}} Running */

/** What runs, or null. */
export const running = signal(/** @type {Running | null} */ (null));
/** For whom the timer offers itself: after a call was begun, or while a chart is open. */
export const offered = signal(/** @type {{id: string, call: boolean} | null} */ (null));

/** Asks the service what runs. */
export async function readTimer() {
  if (!can("logTime")) {
    running.value = null;
    return;
  }
  try {
    const { results } = await get("time-entries/", { user: me.peek()?.id, page_size: 20 });
    running.value = results.find((/** @type {any} */ entry) => entry.running) ?? null;
  } catch (error) {
    if (!(error instanceof Problem)) {
      throw error;
    } // what was known stays in sight; the next reading says more
  }
}

/** Starts the timer for a patient, for a call or for work on the chart. What is running is not stopped: one is told.
 *  @param {string} id @param {{call?: boolean}} [how] */
export async function startTimer(id, { call = false } = {}) {
  if (running.peek()) {
    toast(`The timer runs already, for ${running.peek()?.patient_name}.`, "problem");
    return;
  }
  try {
    const what = call ? { category: "interactive", activity: "phone_call", contact_method: "phone" }
      : { category: "review", activity: "triage" };
    await post("time-entries/start/", { patient_id: id, ...what });
    offered.value = null;
    toast("The timer runs.");
  } catch (error) {
    toast(asProblem(error).message, "problem");
  }
}

/** Offers the timer for a call. @param {string} id */
export const offerCall = (id) => { offered.value = running.peek() ? null : { id, call: true }; };

export function followTimer() {
  effect(() => {
    if (me.value) {
      void readTimer();
    } else {
      running.value = null;
    }
  });
  effect(() => { // also by a view
    if (written.value.path.startsWith("time-entries/") && me.peek()) {
      void readTimer();
    }
  });
  effect(() => { // a chart is open
    const { view, about } = place.value;
    const chart = view === "patient" && typeof about.id === "string";
    offered.value = chart && !running.value && can("logTime") ? { id: about.id, call: false } : null;
  });
  addEventListener("click", (event) => { // a number was touched: a call begins
    const number = event.target instanceof Element && event.target.closest("a[href^='tel:']");
    const id = number && (number.closest("[data-patient]")?.getAttribute("data-patient") ?? place.value.about.id);
    if (typeof id === "string") {
      offerCall(id);
    }
  });
  setInterval(() => { void (me.peek() && document.visibilityState === "visible" && readTimer()); }, 60_000);
}
