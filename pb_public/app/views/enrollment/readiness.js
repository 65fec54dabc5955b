// The readiness of an enrollment, the missing items, and links to them.
import { html } from "../../view.js";
import { stepWith } from "./steps.js";

/** What an enrollment makes possible: the text when ready and when not. @type {[string, string, string][]} */
const readinessTexts = [
  ["monitoring", "Monitoring from the first reading", "Monitoring not ready"],
  ["alerts", "Alerts by suitable thresholds, to the care team", "Alerts reach no one"],
  ["billing", "Billing", "Billing not ready"],
  ["claims", "Claims to the payer", "Claims would be rejected"],
  ["delivery", "", "Not linked to the EMR"],
];

/** @param {{standing: import("./steps.js").Standing, patient: any, turn: (step: string) => void}} props */
export function Readiness({ standing, patient, turn }) {
  const missing = itemsOf(standing, "missing");
  const hints = itemsOf(standing, "hints");
  const bare = (/** @type {string} */ detail) => detail.replace(/\.$/, "");
  return html`<aside class="enrol-aside" aria-label="Enrollment status">
    <section class="card"><h3>Readiness</h3><ul class="plain-list">${readinessTexts.map(([stops, yes, no]) => {
      const why = missing.filter(({ item }) => item.stops === stops);
      const fine = why.length === 0;
      return (!fine || yes) && html`<li key=${stops}><span class=${fine ? "mark good" : "mark warning"}
        aria-hidden="true">${fine ? "●" : "◆"}</span>
        <span><strong>${fine ? yes : no}</strong>${fine ? "" : html`<small>${why.map(({ item }) => bare(item.detail)).join(". ")}.</small>`}
          </span></li>`;
    })}</ul></section>
    <section class="card" aria-labelledby="enrol-missing"><h3 id="enrol-missing">Missing <span
      class=${missing.length > 0 ? "badge warning" : "badge good"}>${
      missing.length > 0 ? html`<span aria-hidden="true">◆</span> ${missing.length}` : "Nothing"}</span></h3>
      <ul class="plain-list">${missing.map(({ step, item }) => html`<li
        key=${`${item.code} ${item.field}`}><span><strong>${bare(item.detail)}</strong><small>${item.effect}</small></span>
        <button class="link" aria-label=${`Go to: ${bare(item.detail)}`}
          onClick=${() => turn(stepWith(step).step)}>Go</button></li>`)}</ul></section>
    ${hints.length > 0 && html`<section class="card"><h3>Notes</h3><ul class="plain-list">${hints.map(({ step, item }) => html`<li
      key=${`${item.code} ${item.field}`}>
      <span>${bare(item.detail)}<small>${item.effect}</small></span>
      ${!item.field?.match(/^(payer|users)\./) && html`<button class="link" aria-label=${`Go to: ${bare(item.detail)}`}
        onClick=${() => turn(stepWith(step).step)}>Go</button>`}</li>`)}</ul></section>`}
    ${patient.status === "archived" && html`<p class="notice warning">The patient is archived: readings are not accepted.</p>`}
  </aside>`;
}

/** All items of a kind, each with the server's step. @param {import("./steps.js").Standing} standing
 *  @param {"missing" | "hints"} kind */
export const itemsOf = (standing, kind) => standing.steps.flatMap((status) => status[kind].map((item) => ({ step: status.step, item })));
