// A row of the triage list.
import { ageText } from "../../ui/format.js";
import { html } from "../../view.js";
import { Spark } from "./row_trend.js";
import { assignee, levelLabels, shortMRN, isStale, stateLabels, valueOf, reasonsText } from "./labels.js";

/** @typedef {import("./order.js").Row} Row */

/** @param {{row: Row}} props */
export function RowContent({ row }) {
  const c = row.concern;
  const { text, unit } = valueOf(c, row.latest_vitals);
  const state = c?.state ?? "no_data";
  const reason = reasonsText(row);
  const { who, state: how, initials, tone } = assignee(row);
  return html`
    <span class=${`score ${row.risk_level}`}><span class="shape" aria-hidden="true">${levelLabels[row.risk_level][0]}</span>
      <b>${row.risk_score}</b></span>
    <span class="whom"><bdi class="name">${row.patient_name}</bdi><small>${shortMRN(row.mrn)}</small></span>
    <span class=${`value ${state}${isStale(c?.measured_at) ? " stale" : ""}`}>
      ${state === "unsure" && html`<span class="doubt" role="img" aria-label=${stateLabels.unsure[1]}>?</span>`}<b>${text}</b><small
        class="unit">${unit}</small>
      <small class="age">${c?.measured_at ? ageText(c.measured_at) : ""}</small></span>
    <${Spark} row=${row} />
    <span class="why" title=${reason}>${reason}</span>
    <span class=${`who ${tone}`}>${row.holder && html`<span class="face" aria-hidden="true">${initials}</span>`}
      <span class="both"><b><bdi>${who}</bdi></b>${how && html`<small>${how}</small>`}</span></span>`;
}
