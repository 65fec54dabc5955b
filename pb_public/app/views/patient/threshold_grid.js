// Thresholds as a grid: one row for each measure, one column for each side. Limits that differ from the practice's are bold.
import { classes, html, useState } from "../../view.js";
import { unitOf } from "../../ui/units.js";
import { displayedLimit, groups, patientOnlyBounds, sides, storedLimit } from "../../ui/vitals.js";

/** The groups that differ from the current thresholds. @param {any} now @param {Record<string, any>} values of the form, by group and
 *  field, in display units */
export function changesOf(now, values) {
  const body = {};
  for (const { group, bounds } of groups) {
    if (!values[`${group}.on`]) {
      if (now[group]) {
        body[group] = null;
      }
      continue;
    }
    const was = (/** @type {string} */ field) => now[group]?.[field] ?? null;
    const changed = bounds.map((bound) => /** @type {[string, number | null]} */ ([bound.field, storedLimit(bound,
      values[`${group}.${bound.field}`] ?? null, was(bound.field))])).filter(([field, value]) => value !== was(field));
    if (changed.length > 0 || !now[group]) {
      body[group] = Object.fromEntries(changed);
    }
  }
  return body;
}

/**
 * defaults are the practice's thresholds, null for the practice's own grid, which has no bounds that only patients have. provisional are
 * paths of bounds ("weight.target_kg") that a proposed template sets until it is decided.
 * @param {{now: any, defaults?: any, disabled: boolean, errors: Record<string, string[]>, provisional?: string[], changed?: () => void}}
 *   props
 */
export function ThresholdGrid({ now, defaults = null, disabled, errors, provisional = [], changed }) {
  const [enabled, setEnabled] = useState(Object.fromEntries(groups.map(({ group }) => [group, now[group] !== null])));
  const input = (/** @type {string} */ group, /** @type {import("../../ui/vitals.js").Bound} */ bound) => {
    const path = `${group}.${bound.field}`;
    const value = now[group]?.[bound.field] ?? null;
    const isOwn = defaults && (defaults[group]?.[bound.field] ?? null) !== value;
    return html`<input type="number" step="any" name=${path} aria-label=${`${bound.label}, ${unitOf(bound.unit)}`}
      aria-invalid=${errors[path] ? "true" : null} class=${classes(isOwn && "own", provisional.includes(path) && "provisional")}
      title=${provisional.includes(path) ? "Provisional, from a proposed template" : null} disabled=${disabled}
      defaultValue=${displayedLimit(bound, value) ?? ""} onInput=${changed} />`;
  };
  const cells = (/** @type {string} */ group, /** @type {import("../../ui/vitals.js").Bound[]} */ bounds) =>
    html`${bounds[0].side === null ? html`<td colspan="4">${input(group, bounds[0])}</td>` : sides.map(([side]) => {
      const bound = bounds.find((one) => one.side === side);
      return html`<td key=${side}>${bound && input(group, bound)}</td>`;
    })}<td class="soft">${unitOf(bounds[0].unit)}</td>`;
  return html`<div class="scroll"><table class="limits"><caption class="unseen">Thresholds</caption>
    <thead><tr><th scope="col">Measure</th><th scope="col" class="critical"><span aria-hidden="true">▲</span> Critical ≤</th>
      <th scope="col" class="warning"><span aria-hidden="true">◆</span> Warning ≤</th><th scope="col" class="warning"><span
        aria-hidden="true">◆</span> Warning ≥</th>
      <th scope="col" class="critical"><span aria-hidden="true">▲</span> Critical ≥</th><th scope="col">Unit</th></tr></thead>
    ${groups.map(({ group, name, bounds }) => {
      const shown = bounds.filter(({ field }) => defaults !== null || !patientOnlyBounds.includes(field));
      const rows = [...new Set(shown.map((bound) => bound.row))].map((one) => shown.filter((bound) => bound.row === one));
      const isOne = rows.length === 1 && enabled[group]; // its limits stand beside its switch
      return html`<tbody key=${group}><tr class="group"><th colspan=${isOne ? 1 : 6} scope="rowgroup"><label><input type="checkbox"
          name=${`${group}.on`} checked=${enabled[group]} disabled=${disabled} onChange=${(event) => {
            setEnabled({ ...enabled, [group]: event.target.checked });
            changed?.();
          }} /> ${name}${!enabled[group] && html`<span class="soft">: no alerts</span>`}</label></th>
          ${isOne && cells(group, rows[0])}</tr>
        ${!isOne && enabled[group] && rows.map((of) => html`<tr key=${of[0].row}>
          <th scope="row">${of[0].row}</th>${cells(group, of)}</tr>`)}
      </tbody>`;
    })}</table></div>`;
}
