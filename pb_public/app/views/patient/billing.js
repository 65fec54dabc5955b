// The month's billing of a patient by code: met or not, evidence, and missing requirements.
import { get } from "../../api.js";
import { can } from "../../permissions.js";
import { go, updateAbout } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { Field } from "../../ui/form.js";
import { calendarDate, money, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { thisMonth } from "../../ui/time.js";
import { Calendar } from "../billing/calendar.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["CodeExplanation"]} Code */

/** Where missing requirements are fixed. @type {Record<string, {tab: string, name: string, isAllowed: () => boolean}>} */
const remedies = {
  consent: { tab: "people", name: "Record consent", isAllowed: () => can("changeConsents") },
  device: { tab: "devices", name: "Assign a device", isAllowed: () => can("assignDevices") },
  setup: { tab: "devices", name: "Record setup", isAllowed: () => can("assignDevices") },
};

/** @param {{id: string, turn: number}} props */
export function Billing({ id, turn }) {
  const [month, setMonth] = useState(thisMonth());
  const explanation = useLoad((signal) => get(`billing/explain/${id}/`, { month }, signal), [id, month, turn]);
  const fit = useLoad((signal) => get(`billing/eligibility/${id}/`, {}, signal), [id, turn]);
  const codes = useLoad((signal) => get("billing/cpt-codes/", { page_size: 100 }, signal), []);
  const about = (/** @type {string} */ code) => codes.data?.results.find((one) => one.code === code);
  return html`<section aria-labelledby="billing">
    <div class="heading"><h2 id="billing">Billing</h2><${Field} label="Month" name="month" kind="month" value=${month}
      max=${thisMonth()} onChange=${(event) => event.target.value && setMonth(event.target.value)} /></div>
    <div class="card"><${Calendar} id=${id} month=${month} turn=${turn} /></div>
    <${Loaded} from=${explanation} empty=${(data) => data.codes.length === 0} nothing=${html`<${EmptyState}
      title="Nothing to bill this month" />`}>
      ${(data) =>
        html`<ul class="grid plain-grid">${data.codes.map((code) => html`<li class="card" key=${`${code.cpt_code} ${code.period_start}`}>
        <${CodeCard} code=${code} about=${about(code.cpt_code)} /></li>`)}</ul>`}
    </${Loaded}>
    <div class="card"><h3>Eligible for billing?</h3><${Loaded} from=${fit}>${(data) =>
      html`<ul class="checks">${data.checks.map((check) => html`<li key=${check.name} class=${check.ok ? "ok" : "open"}>
      <span aria-hidden="true">${check.ok ? "✓" : "✗"}</span> <span><strong>${humanize(check.name)}</strong>${check.ok ? ""
        : " (missing)"}: ${check.detail}
      ${!check.ok && remedies[check.name]?.isAllowed() && html` <button class="link"
        onClick=${() => updateAbout({ tab: remedies[check.name].tab })}>
        ${remedies[check.name].name}</button>`}</span></li>`)}</ul>`}</${Loaded}></div>
  </section>`;
}

/** @param {{code: Code, about: any}} props */
function CodeCard({ code, about }) {
  const state = code.billed ? "billed" : code.missing.length === 0 && code.reasons.length === 0 ? "met" : "not_met";
  return html`<div class="heading"><h3>${code.cpt_code}</h3><${Badge} of=${code.status ?? state} /></div>
    <p>${about?.description ?? ""}${about && html` <small>${money(about.default_rate)}</small>`}<br />
      <small>${calendarDate(code.period_start)} to ${calendarDate(code.period_end)}</small></p>
    <${Progress} name="Days with readings" has=${code.days} needs=${code.days_needed} />
    <${Progress} name="Minutes" has=${code.minutes} needs=${code.minutes_needed} />
    ${code.missing.length > 0 && html`<p><strong>Missing:</strong> ${code.missing.join(", ")}</p>`}
    ${code.reasons.length > 0 && html`<p><strong>Reason:</strong> ${code.reasons.map((reason) => humanize(reason).toLowerCase()).join(", ")}
      </p>`}
    ${code.entry_id && html`<button class="link" onClick=${() => go("entry", { id: code.entry_id })}>Open billing entry</button>`}`;
}

/** @param {{name: string, has: number | null, needs: number | null}} props */
const Progress = ({ name, has, needs }) => needs !== null && has !== null
  && html`<div class="progress"><span>${name}: <strong>${has}</strong> of ${needs}</span>
  <progress max=${needs} value=${Math.min(has, needs)} aria-label=${name}></progress></div>`;
