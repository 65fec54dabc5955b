// What the EMR offers for deliveries: what works, what does not, and what to request from its administrator.
import { Badge } from "../../ui/badge.js";
import { dateTime } from "../../ui/format.js";
import { html } from "../../view.js";

/** @typedef {NonNullable<import("../../../../tools/console/contract.d.ts").components["schemas"]["EMRDelivery"]>} Delivery */
/** @typedef {{name: string, state: "works" | "missing" | "unknown", text: string, request?: string}} Offer */

const reasons = {
  setting: "VIGIL_EMR_DELIVERY decides, and what the EMR declares does not count.",
  documents_offered: "The EMR accepts documents, not Observations: it gets each patient's report of the month.",
  create_offered: "The EMR declares that it accepts Observations.",
  accepted_before: "The EMR has accepted Observations before, although it does not declare it.",
  no_statement: "The EMR's CapabilityStatement could not be read. Readings are sent.",
  create_not_offered: "The EMR cannot receive readings: it does not declare that it accepts Observations. Readings wait and are not sent.",
};

/** @param {Delivery} delivery @returns {Offer} */
function readings({ way, reason }) {
  if (way === "nothing") {
    return { name: "Readings in the chart", state: "missing", text: reasons[reason],
      request: "to permit create of Observation for this client" };
  }
  return { name: "Readings in the chart", state: reason === "no_statement" ? "unknown" : "works", text: reasons[reason] };
}

/** @param {Delivery} delivery @returns {Offer} */
function search({ observation_search: by, statement_read_at }) {
  const name = "Search for a reading after a lost answer";
  if (by.includes("identifier")) {
    return { name, state: "works", text: "By identifier." };
  }
  if (by.includes("patient") && by.includes("date")) {
    return { name, state: "works", text: "By patient, category and time; copies are recognized by their values." };
  }
  if (!statement_read_at) {
    return { name, state: "unknown", text: "It is tried when needed." };
  }
  return { name, state: "missing", text: "Not declared.",
    request: "to permit search of Observation by identifier, or by patient, category and date" };
}

/** @param {Delivery} delivery @returns {Offer} */
function duplicates({ conditional_create: declared }) {
  const name = "No duplicates by the EMR itself";
  const request = "whether it honors conditional create (If-None-Exist) of Observation, and to declare it";
  if (declared) {
    return { name, state: "works", text: "The EMR declares conditional create." };
  }
  return declared === null ? { name, state: "unknown", text: "The EMR does not declare it, so readings are searched for instead.", request }
    : { name, state: "missing", text: "It is switched off or not offered, so readings are searched for instead.", request };
}

const reportsToChart = "Reports in the chart";

/** @param {Delivery} delivery @returns {Offer[]} */
function reports({ way, documents, statement_read_at: readAt }) {
  const isWay = way === "document" || way === "both";
  if (!isWay && !documents?.create) {
    return [{ name: reportsToChart, state: readAt ? "missing" : "unknown", text: readAt ? "Not declared." : "Nothing is known yet.",
      request: "to permit create of DocumentReference for this client" }];
  }
  const by = documents?.search ?? [];
  const has = (/** @type {string[]} */ ...names) => names.every((name) => by.includes(name));
  const isFound = has("identifier") || has("patient", "type") || has("patient", "category", "date");
  return [
    { name: reportsToChart, state: "works", text: isWay ? "Each month, and on demand." : "On demand." },
    isFound ? { name: "Search for a report after a lost answer", state: "works", text: "Declared." }
      : { name: "Search for a report after a lost answer", state: documents ? "missing" : "unknown", text: "Not declared.",
        request: "to permit search of DocumentReference by identifier, or by patient, category and date" },
    documents?.update ? { name: "Correction of a report", state: "works", text: "In place." }
      : { name: "Correction of a report", state: documents ? "missing" : "unknown",
        text: "A corrected report is filed as a new document; a person marks the former one as superseded.",
        request: "to permit update of DocumentReference, or to mark replaced documents as superseded" },
  ];
}

/** @param {Offer[]} offers */
function consequence([reading, searched, unique]) {
  return reading?.state !== "missing" && searched?.state === "missing" && unique?.state !== "works"
    && html`<p class="notice">After a lost answer it cannot be found out whether the EMR has a reading. Such deliveries wait under
      Deliveries until a person looks in the chart.</p>`;
}

const states = { works: ["connected", "Works"], missing: ["degraded", "Does not work"], unknown: ["no_data", "Not stated"] };

/** @param {{delivery: Delivery}} props */
export function Offers({ delivery }) {
  const single = delivery.way === "document" ? [] : [search(delivery), duplicates(delivery)];
  const offers = [readings(delivery), ...single, ...reports(delivery)];
  const readAt = delivery.statement_read_at;
  return html`<section class="card"><h2>What the EMR offers</h2>
    <p>${readAt ? `Declared by the EMR, read ${dateTime(readAt)}.` : "Nothing could be read yet."}</p>
    <dl class="facts">${offers.map(({ name, state, text, request }) => html`<div key=${name}><dt>${name}</dt>
      <dd><${Badge} of=${states[state]?.[0]} text=${states[state]?.[1]} /> ${text}${request
        && html` <strong>Request from the EMR's administrator:</strong> ${request}.`}</dd></div>`)}</dl>
    ${single.length > 0 && consequence(offers)}
  </section>`;
}
