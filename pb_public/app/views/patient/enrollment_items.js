// The missing enrollment items on the chart: what is missing, what it blocks, and a link.
import { get } from "../../api.js";
import { go } from "../../router.js";
import { useLoad } from "../../ui/states.js";
import { html } from "../../view.js";
import { itemsOf } from "../enrollment/readiness.js";
import { stepWith } from "../enrollment/steps.js";

/** @typedef {{id: string, patient?: any, turn?: number, changed?: () => void}} Props turn counts changes to the patient */

/** @param {Props} props */
export function EnrollmentItems({ id, patient, turn = 0 }) {
  const standing = useLoad((signal) => get(`patients/${id}/enrolment/`, {}, signal), [id, turn, patient?.updated_at]);
  const s = standing.data;
  if (!s || s.state === "done" || patient?.status === "archived") {
    return null;
  }
  const missing = itemsOf(s, "missing");
  const to = (/** @type {string} */ step) => go("enrolment", { id, step: stepWith(step).step });
  if (missing.length === 0) {
    return html`<p class="enrol-missing notice">Enrolled. Waiting for the first reading from the device.</p>`;
  }
  return html`<section class="enrol-missing" aria-labelledby="missing">
    <h2 id="missing"><span aria-hidden="true">◆</span> Enrollment: ${missing.length} missing</h2>
    <ul>${missing.map(({ step, item }) => html`<li key=${`${item.code} ${item.field}`}><button class="link"
      onClick=${() => to(step)}>${item.detail.replace(/\.$/, "")}</button>
      <small>${item.effect}</small></li>`)}</ul>
  </section>`;
}
