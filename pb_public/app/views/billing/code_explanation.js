// Why a code was billed or not: present, required and missing evidence.
import { get } from "../../api.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { calendarDate, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { classes, html } from "../../view.js";
import { stateName } from "./labels.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["CodeExplanation"]} Code */

/** @param {{patient: string, month: string, entry?: string, only?: boolean}} props entry is the id of the open entry; only: show only that
 * one */
export function Explained({ patient, month, entry, only = false }) {
  const answer = useLoad((signal) => get(`billing/explain/${patient}/`, { month }, signal), [patient, month]);
  return html`<${Loaded} from=${answer} empty=${(data) => data.codes.length === 0} nothing=${html`<${EmptyState}
    title="No codes for this month" />`}>
    ${(data) => html`<div class="codes-explained">${data.codes
      .filter((/** @type {Code} */ code) => !only || code.entry_id === entry).map((/** @type {Code} */ code) =>
        html`<${OneCode} key=${code.cpt_code + code.period_start} code=${code} here=${entry !== undefined && code.entry_id === entry}
        linked=${entry === undefined} />`)}</div>`}
  </${Loaded}>`;
}

/** @param {{code: Code, here: boolean, linked: boolean}} props */
const OneCode = ({ code, here, linked }) => html`<section class=${classes(here && "this")}>
  <h3><span>${code.cpt_code} <small class="soft">${calendarDate(code.period_start)} – ${calendarDate(code.period_end)}${here
    ? ", this entry" : ""}</small></span>
    ${code.billed ? html`<${Badge} of=${code.status} text=${stateName(code.status ?? "")} />` : html`<${Badge} text="Not billed" />`}</h3>
  ${code.days_needed !== null && html`<${Measure} have=${code.days ?? 0} needed=${code.days_needed} unit="days" />`}
  ${code.minutes_needed !== null && html`<${Measure} have=${code.minutes ?? 0} needed=${code.minutes_needed} unit="minutes" />`}
  ${code.missing.length > 0 && html`<p><strong>Missing:</strong> ${code.missing.join(", ")}</p>`}
  ${code.reasons.length > 0 && html`<ul>${code.reasons.map((reason) => html`<li key=${reason}>${humanize(reason)}</li>`)}</ul>`}
  ${linked && code.entry_id && html`<button class="link" onClick=${() => go("entry", { id: code.entry_id })}>Open the entry</button>`}
</section>`;

/** @param {{have: number, needed: number, unit: string}} props */
const Measure = ({ have, needed, unit }) => html`<div class="near"><span>${have} of ${needed} ${unit}</span>
  <progress max=${needed} value=${Math.min(have, needed)} aria-label=${`${have} of ${needed} ${unit}`}></progress></div>`;
