// What the EMR's chart has of a patient: current medicines, allergies and stays, and values to accept into the record.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { ago, calendarDate, humanize } from "../../ui/format.js";
import { asProblem, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html, useEffect, useState } from "../../view.js";

/** Loads the stored context of a linked patient, and has the chart read again if it is stale. @param {any} patient */
export function useChart(patient) {
  const wanted = Boolean(can("readContext") && patient?.external_id);
  const path = `patients/${patient?.id}/emr-context/`;
  const from = useLoad((signal) => (wanted ? get(path, {}, signal) : Promise.resolve(null)), [patient?.id, wanted]);
  const [failed, setFailed] = useState(false);
  const state = from.data?.state;
  useEffect(() => {
    if (state === "stale") {
      post(`${path}refresh/`).then((fresh) => from.change(() => fresh), () => setFailed(true));
    }
  }, [state, path]);
  return { data: ["stale", "current"].includes(state) ? from.data : null, failed, change: from.change };
}

/** @typedef {ReturnType<typeof useChart>} Chart */

const dated = (/** @type {string} */ text) => calendarDate(/^\d{4}-\d{2}-\d{2}/.test(text) ? text.slice(0, 10) : null);

/** The stay in a hospital that is in progress, or "". @param {Chart} chart */
export function stayText(chart) {
  const stay = chart.data?.encounters.find((/** @type {any} */ one) =>
    one.status === "in-progress" && ["IMP", "ACUTE", "EMER", "OBSENC"].includes(one.class));
  return stay ? `EMR: in hospital since ${dated(stay.start)}.` : "";
}

const current = (/** @type {any[]} */ list) => list.filter((one) => ["active", "on-hold", ""].includes(one.status ?? one.clinical_status));

/** The current medicines, or "". @param {Chart} chart */
export const medicinesText = (chart) => (current(chart.data?.medications ?? []).map(({ text }) => text).join("; "));

/** Each kind of proposal: its words, and the permission to accept it.
 *  @type {Record<string, {text: (v: any) => string, needs: Parameters<typeof can>[0]}>} */
const kinds = {
  diagnosis: { text: (v) => `Diagnosis ${v.code} ${v.text ?? ""}`, needs: "changePatient" },
  order: { text: (v) => `Order of ${dated(v.dated)}: ${v.text}`, needs: "changePatient" },
  insurance: { text: (v) => `Insurance: ${v.payer}${v.member_id ? `, member ${v.member_id}` : ""}`, needs: "changePatient" },
  established_visit: { text: (v) => `Visit on ${dated(v.dated)}`, needs: "changePatient" },
  hold: { text: (v) => `In hospital since ${dated(v.since ?? "")}: hold for a week`, needs: "holdPatient" },
  deceased: { text: (v) => `Deceased ${v.deceased_at ? dated(v.deceased_at) : ""}: archive`, needs: "archivePatient" },
};

/** The proposals of some kinds, or of all, with Accept and Dismiss.
 *  @param {{chart: Chart, patient: any, only?: string[], changed: () => void}} props */
export function Proposals({ chart, patient, only = Object.keys(kinds), changed }) {
  const list = (chart.data?.proposals ?? []).filter((/** @type {any} */ one) => only.includes(one.kind));
  const decide = async (/** @type {any} */ one, /** @type {string} */ word, /** @type {any} */ button) => {
    const around = button.closest("section");
    try {
      const fresh = await post(`patients/${patient.id}/emr-context/proposals/${one.id}/${word}/`);
      chart.change(() => fresh);
      toast(word === "accept" ? "Accepted." : "Dismissed.");
      setTimeout(() => (around.querySelector(".proposed button") ?? around.querySelector("h2")).focus()); // the button is gone
      if (word === "accept") {
        changed();
      }
    } catch (error) {
      const problem = asProblem(error);
      toast(Object.values(problem.fields)[0]?.[0] ?? problem.message, "problem");
    }
  };
  return list.length > 0 && html`<ul class="plain-list proposed" aria-label="Proposed from the EMR">${list.map((/** @type {any} */ one) => {
    const { text, needs } = kinds[one.kind];
    return html`<li key=${one.id}><span>${text(one.value)} <small class="soft">${one.date && dated(one.date)}</small></span>
      ${can(needs) && html`<span class="choices no-print">
        <button onClick=${(/** @type {any} */ e) => decide(one, "accept", e.target)}>Accept</button>
        <button class="quiet" onClick=${(/** @type {any} */ e) => decide(one, "dismiss", e.target)}>Dismiss</button></span>`}</li>`;
  })}</ul>`;
}

/** @param {{chart: Chart, patient: any, changed: () => void}} props */
export function ChartCard({ chart, patient, changed }) {
  const { data, failed } = chart;
  if (!data) {
    return null;
  }
  const allergies = current(data.allergies).map(({ text }) => text).join("; ");
  const lacking = data.unavailable.map((/** @type {any} */ one) => `${one.resource}: ${humanize(one.reason).toLowerCase()}`).join("; ");
  return html`<section class="card" aria-labelledby="emr-chart"><div class="heading"><h2 id="emr-chart" tabindex="-1">From the EMR</h2>
    <small class="soft">${failed ? "could not be read now" : data.fetched_at ? ago(data.fetched_at) : "reading"}</small></div>
    <${Proposals} chart=${chart} patient=${patient} changed=${changed} />
    ${stayText(chart) && html`<p>${stayText(chart)}</p>`}
    ${data.fetched_at && html`<p><strong>Medicines</strong> ${medicinesText(chart) || "none"}</p>
      <p><strong>Allergies</strong> ${allergies || "none"}</p>`}
    ${lacking && html`<p class="soft">Not or not fully read: ${lacking}.</p>`}
  </section>`;
}
