// Links that open a chart once: in a second tab, or for a colleague. The code stands behind the #, which no server receives, and is removed
// from the address and the history before anything else happens.
import { post } from "./api.js";
import { clearPlace, go } from "./router.js";
import { me } from "./session.js";
import { toast } from "./ui/toast.js";
import { effect } from "./view.js";

let code = "";

/** Takes the code from the address. */
function takeCode() {
  const [, given = ""] = /^#\/chart\?code=(.+)$/.exec(location.hash) ?? [];
  if (given) {
    clearPlace({ isFinal: true });
    code = decodeURIComponent(given);
    void open();
  }
}

/** Opens the chart as soon as someone is signed in, after the shell has restored its place. */
async function open() {
  if (code && me.peek()) {
    const used = code;
    code = "";
    try {
      const { patient_id: id } = await post("chart-links/", { code: used });
      go("patient", { id });
    } catch (error) {
      toast(/** @type {Error} */ (error).message, "problem");
    }
  }
}

/** Follows links to charts from the start of the page. */
export function followChartLinks() {
  takeCode();
  addEventListener("popstate", takeCode); // a link that is pasted into an open page
  effect(() => { me.value && setTimeout(open); });
}

/** The address of a new link. @param {string} id of the patient */
export async function chartLink(id) {
  const { code: made } = await post(`patients/${id}/links/`);
  return `${location.origin}/#/chart?code=${encodeURIComponent(made)}`;
}
