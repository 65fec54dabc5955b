// What works already, what is missing and where to go for it.
import { html } from "../../view.js";
import { stepWith } from "./steps.js";

/** What may be stopped, in words: what it is while it works, and while it does not. @type {[string, string, string][]} */
const works = [
  ["monitoring", "Monitoring from the first reading", "Monitoring waits"],
  ["alerts", "Alerts by thresholds that fit, to the care team", "Alerts are not as they should be"],
  ["billing", "Billing", "Billing waits"],
  ["claims", "Claims to the payer", "Claims would be refused"],
  ["delivery", "", "Delivery to the EMR waits"],
];

/** @param {{standing: import("./steps.js").Standing, patient: any, turn: (step: string) => void}} props */
export function Aside({ standing, patient, turn }) {
  const missing = itemsOf(standing, "missing");
  const hints = itemsOf(standing, "hints");
  const bare = (/** @type {string} */ detail) => detail.replace(/\.$/, "");
  return html`<aside class="enrol-aside" aria-label="Where the enrolment stands">
    <section class="card"><h3>What works now</h3><ul class="plain-list">${works.map(([stops, yes, no]) => {
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
        <button class="link" aria-label=${`Go: ${bare(item.detail)}`}
          onClick=${() => turn(stepWith(step).step)}>Go</button></li>`)}</ul></section>
    ${hints.length > 0 && html`<section class="card"><h3>Worth knowing</h3><ul class="plain-list">${hints.map(({ step, item }) => html`<li
      key=${`${item.code} ${item.field}`}>
      <span>${bare(item.detail)}<small>${item.effect}</small></span>
      ${!item.field?.match(/^(payer|users)\./) && html`<button class="link" aria-label=${`Go: ${bare(item.detail)}`}
        onClick=${() => turn(stepWith(step).step)}>Go</button>`}</li>`)}</ul></section>`}
    ${patient.status === "archived" && html`<p class="notice warning">The patient is archived: nothing is taken in.</p>`}
  </aside>`;
}

/** All items of a kind with the service's step that each belongs to. @param {import("./steps.js").Standing} standing
 *  @param {"missing" | "hints"} kind */
export const itemsOf = (standing, kind) => standing.steps.flatMap((told) => told[kind].map((item) => ({ step: told.step, item })));
