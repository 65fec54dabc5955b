// The table of entries with their facts as columns. A blocked entry cannot be selected; its row expands to the reasons and fixes.
import { calendarDate, money, number } from "../../../ui/format.js";
import { classes, Fragment, html } from "../../../view.js";
import { blockersOf, stateText } from "../blocking_reasons.js";

/** @typedef {import("../blocking_reasons.js").Row} Row */
/** @typedef {(row: Row) => void} Act */
/** @typedef {{toggle: Act, show: Act, focus: Act}} Acts actions on a row */
/** @typedef {Acts & {rows: Row[], chosen: Set<string>, open: string, at: string, looked: string | null, toggleAll: () => void}} Props */

const marks = {
  ok: ["✓", "good", "present"], missing: ["◆", "warning", "missing"],
  advised: ["◇", "unsure", "missing, not required"], self_pay: ["–", "", "self-pay"],
};

/** @param {{is: keyof typeof marks}} props */
const Fact = ({ is }) => html`<td class="fact"><span class=${classes("mark", marks[is][1])} aria-hidden="true">${marks[is][0]}</span>
  <span class="unseen">${marks[is][2]}</span></td>`;

/** @param {{have: number | null, needed: number | null}} props */
const Measure = ({ have, needed }) => html`<td class="measure">${have === null || needed === null ? "–" : html`
  <span class=${classes("mark", have >= needed ? "good" : "warning")} aria-hidden="true">
    ${have >= needed ? "✓" : "◆"}</span> ${number(have)} of ${number(needed)}`}</td>`;

/** @param {Props & {caption: string, verb: string}} props verb is the action on selected entries */
export function EntryTable({ rows, chosen, open, at, looked, toggle, toggleAll, show, focus, caption, verb }) {
  const ready = rows.filter((row) => row.ready);
  const all = ready.length > 0 && ready.every((row) => chosen.has(row.entry_id));
  const some = ready.some((row) => chosen.has(row.entry_id));
  return html`<div class="scroll" role="region" aria-label=${caption}><table class="sheet-of-month">
    <caption class="unseen">${caption}</caption>
    <thead><tr>
      <th scope="col"><input type="checkbox" aria-label=${`Select all that are ready to ${verb}`} checked=${all}
        indeterminate=${some && !all} disabled=${ready.length === 0} onChange=${toggleAll} /></th>
      ${["Patient", "Code", "Days", "Minutes"].map((name) => html`<th key=${name} scope="col">${name}</th>`)}
      ${["Consent", "Diagnosis", "Order", "Provider", "Payer"].map((name) => html`<th key=${name} scope="col" class="fact">${name}</th>`)}
      <th scope="col" class="number">Amount</th><th scope="col">State</th></tr></thead>
    <tbody>${rows.map((row) => html`<${Line} key=${row.entry_id} row=${row} chosen=${chosen.has(row.entry_id)}
      open=${open === row.entry_id} here=${at === row.entry_id} looked=${looked === row.entry_id}
      toggle=${toggle} show=${show} focus=${focus} verb=${verb} />`)}</tbody>
  </table></div>`;
}

/** @param {Acts & {row: Row, chosen: boolean, open: boolean, here: boolean, looked: boolean, verb: string}} props */
function Line({ row, chosen, open, here, looked, toggle, show, focus, verb }) {
  const state = stateText(row);
  const name = `${row.patient_name}, ${row.cpt_code}`;
  const press = (/** @type {any} */ event) => {
    focus(row);
    if (!event.target.closest("input, button, label")) {
      show(row);
    }
  };
  return html`<${Fragment}><tr data-key=${row.entry_id} tabindex=${here ? 0 : -1} onClick=${press}
      class=${classes(chosen && "chosen", !row.ready && "blocked", looked && "looked")} aria-current=${looked ? "true" : null}
      onFocus=${() => focus(row)}>
    <td><input type="checkbox" checked=${chosen} disabled=${!row.ready} tabindex=${here ? 0 : -1}
      aria-label=${row.ready ? `Select ${name} to ${verb}` : `${name} cannot be selected: ${state}`} onChange=${() => toggle(row)} /></td>
    <th scope="row"><button type="button" class="link" tabindex=${here ? 0 : -1} aria-expanded=${open ? "true" : "false"}
      aria-label=${`${name}: blocked by`} onClick=${() => show(row)}><bdi>${row.patient_name}</bdi></button></th>
    <td class="nowrap">${row.cpt_code}${row.units > 1 && ` ×${row.units}`}</td>
    <${Measure} have=${row.days} needed=${row.days_needed} /><${Measure} have=${row.minutes} needed=${row.minutes_needed} />
    <${Fact} is=${row.facts.consent} /><${Fact} is=${row.facts.diagnosis} /><${Fact} is=${row.facts.order} />
    <${Fact} is=${row.facts.provider} /><${Fact} is=${row.facts.payer} />
    <td class="number">${money(row.amount)}</td>
    <td class=${classes("state-of", !row.ready && "warning")}>
      ${!row.ready && html`<span class="mark warning" aria-hidden="true">◆</span> `}${state}</td>
  </tr>${open && html`<tr class="mends"><td colspan="12"><${Blockers} row=${row} /></td></tr>`}</${Fragment}>`;
}

/** The reasons that block an entry, each with a button to fix it. @param {{row: Row}} props */
export function Blockers({ row }) {
  const against = blockersOf(row);
  if (against.length === 0) {
    return html`<p class="soft">Nothing blocks this entry. Service on ${calendarDate(row.service_date)}, ${row.payer}.</p>`;
  }
  return html`<ul class="against">${against.map((one, i) => html`<li key=${one.code + i}>
    <span class=${classes("mark", one.tone)} aria-hidden="true">${one.tone === "critical" ? "▲" : "◆"}</span>
    <span><strong>${one.title}.</strong> ${one.about} ${one.hint && html`<span class="soft">${one.hint}</span>`}</span>
    ${one.mend && html`<button type="button" onClick=${() => one.mend?.open(row)}>${one.mend.name}</button>`}</li>`)}</ul>`;
}
