// The user's timer: one at a time, for any patient, shown on every page. It is offered when a call starts or a chart opens; views start it
// with startTimer.
import { get, post, Problem, lastWrite } from "./api.js";
import { can } from "./permissions.js";
import { place } from "./router.js";
import { me } from "./session.js";
import { asProblem } from "./ui/states.js";
import { toast } from "./ui/toast.js";
import { effect, signal } from "./view.js";

/** @typedef {{id: number, patient_id: string, patient_name: string, category: string, activity: string | null, started_at: string,
 *  notes: string | null}} Running */

/** The running timer, or null. */
export const runningTimer = signal(/** @type {Running | null} */ (null));
/** The patient of an offered timer: after a call starts, or while a chart is open. */
export const timerOffer = signal(/** @type {{id: string, call: boolean} | null} */ (null));

/** Loads the running timer. */
export async function readTimer() {
  if (!can("logTime")) {
    runningTimer.value = null;
    return;
  }
  try {
    const { results } = await get("time-entries/", { user: me.peek()?.id, page_size: 20 });
    runningTimer.value = results.find((/** @type {any} */ entry) => entry.running) ?? null;
  } catch (error) {
    if (!(error instanceof Problem)) {
      throw error;
    } // keeps the last state until the next read
  }
}

/** Starts the timer for a patient, for a call or for chart review. A running timer is not stopped; a message shows.
 *  @param {string} id @param {{call?: boolean}} [how] */
export async function startTimer(id, { call = false } = {}) {
  if (runningTimer.peek()) {
    toast(`A timer is already running for ${runningTimer.peek()?.patient_name}.`, "problem");
    return;
  }
  try {
    const what = call ? { category: "interactive", activity: "phone_call", contact_method: "phone" }
      : { category: "review", activity: "triage" };
    await post("time-entries/start/", { patient_id: id, ...what });
    timerOffer.value = null;
    toast("Timer started.");
  } catch (error) {
    toast(asProblem(error).message, "problem");
  }
}

/** Offers the timer for a call. @param {string} id */
export const offerCall = (id) => { timerOffer.value = runningTimer.peek() ? null : { id, call: true }; };

export function followTimer() {
  effect(() => {
    if (me.value) {
      void readTimer();
    } else {
      runningTimer.value = null;
    }
  });
  effect(() => { // also changed by a view
    if (lastWrite.value.path.startsWith("time-entries/") && me.peek()) {
      void readTimer();
    }
  });
  effect(() => { // a chart is open
    const { view, about } = place.value;
    const chart = view === "patient" && typeof about.id === "string";
    timerOffer.value = chart && !runningTimer.value && can("logTime") ? { id: about.id, call: false } : null;
  });
  addEventListener("click", (event) => { // a call starts when a phone number is clicked
    const number = event.target instanceof Element && event.target.closest("a[href^='tel:']");
    const id = number && (number.closest("[data-patient]")?.getAttribute("data-patient") ?? place.value.about.id);
    if (typeof id === "string") {
      offerCall(id);
    }
  });
  setInterval(() => { void (me.peek() && document.visibilityState === "visible" && readTimer()); }, 60_000);
}
