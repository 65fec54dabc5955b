// The triage toolbar: levels, filters, order, and the day's review progress.
import { number } from "../../ui/format.js";
import { classes, html, useEffect, useRef } from "../../view.js";
import { levelLabels } from "./labels.js";

/** @typedef {import("./order.js").Filters & {rows: string, page: number}} Query */

const orderings = /** @type {[string, string][]} */ ([["-risk_score", "Most urgent first"], ["risk_score", "Least urgent first"],
  ["-last_reading_at", "Latest reading first"], ["last_reading_at", "Oldest reading first"]]);
const sizes = /** @type {[string, string][]} */ ([["compact", "Compact"], ["comfortable", "Comfortable"]]);

/** @typedef {{stats: any, query: Query, change: (next: Partial<Query>) => void}} Props */

/** @param {Props} props */
export const Levels = ({ stats, query, change }) => html`<div class="choices levels" role="group" aria-label="Risk level">
  <button aria-pressed=${query.risk_level === "" ? "true" : "false"}
    onClick=${() => change({ risk_level: "" })}>All <b>${number(stats?.total_patients)}</b></button>
  ${Object.entries(levelLabels).map(([level, [shape, word]]) => html`<button key=${level} class=${classes("level", level)}
    aria-pressed=${query.risk_level === level ? "true" : "false"}
      onClick=${() => change({ risk_level: query.risk_level === level ? "" : level })}>
    <span class="shape" aria-hidden="true">${shape}</span> ${word} <b>${number(stats?.patients_by_risk_level[level])}</b>
      </button>`)}</div>`;

/** @type {["has_unack_alerts" | "mine" | "needs_review" | "escalated", string, string][]} filter, label, and the name of its count */
const filterButtons = [["has_unack_alerts", "Unacknowledged", "patients_alerting"], ["mine", "Mine", "patients_mine"],
  ["needs_review", "Review due", "patients_needing_review"], ["escalated", "Escalated", "patients_escalated"]];

/** @param {Props} props */
export const FilterButtons = ({ stats, query, change }) => html`<div class="choices" role="group"
  aria-label="Filters">${filterButtons.map(([name, word, count]) => html`
  <button key=${name} aria-pressed=${query[name] === "true" ? "true" : "false"}
    onClick=${() => change({ [name]: query[name] === "true" ? "" : "true" })}>
    ${word} <b>${number(stats?.[count])}</b></button>`)}</div>`;

/** @param {{stats: any}} props */
export const ReviewProgress = ({ stats }) => stats && html`<div class="reviewed">
  <label>Reviewed today <b>${number(stats.patients_reviewed_today)}</b> of ${number(stats.total_patients)}
  <progress max=${Math.max(1, stats.total_patients)} value=${stats.patients_reviewed_today}></progress></label></div>`;

/** @param {{label: string, value: string, options: [string, string][], choose: (value: string) => void}} props */
const Choice = ({ label, value, options, choose }) => html`<select class="slim" aria-label=${label} value=${value}
  onChange=${(event) => choose(event.target.value)}>
  ${options.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}</select>`;

/** @param {Omit<Props, "stats">} props */
export function ListControls({ query, change }) {
  const wait = useRef(0);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => { // cleared elsewhere, or restored
    if (field.current && field.current !== document.activeElement) {
      field.current.value = query.search;
    }
  }, [query.search]);
  const search = (/** @type {any} */ event) => {
    const wanted = event.target.value.trim();
    clearTimeout(wait.current);
    wait.current = setTimeout(() => change({ search: wanted }), 300);
  };
  return html`<div class="sight">
    <input type="search" class="slim" ref=${field} aria-label="Name or MRN" placeholder="Name or MRN" defaultValue=${query.search}
      onInput=${search} />
    <${Choice} label="Order" value=${query.ordering} options=${orderings} choose=${(ordering) => change({ ordering })} />
    <${Choice} label="Row height" value=${query.rows} options=${sizes} choose=${(rows) => change({ rows, page: query.page })} />
  </div>`;
}
