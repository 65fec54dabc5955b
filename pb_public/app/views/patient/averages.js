// Averages of the last days: means, number of readings, and percentage in range.
import { get } from "../../api.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { displayed, displayedChange, unitOf } from "../../ui/units.js";
import { readingTypes, values } from "../../ui/vitals.js";
import { html } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["VitalSummary"]} Summary */

/** The units of the groups. @type {Record<string, string>} */
const unitsOf = Object.fromEntries(values.map(({ group, unit }) => [group, unit]));

/** @param {any} part a group, or the mornings or evenings of one @param {string} unit */
const mean = (part, unit) => ("mean" in part ? displayed(part.mean, unit) ?? "–" : part.mean_systolic === null ? "–"
  : `${part.mean_systolic} / ${part.mean_diastolic}`);

/** @param {any} group @param {string} unit */
const cell = (group, unit) => (group.readings === 0 ? "–" : html`<strong>${mean(group, unit)}</strong> <small>${[
  `${group.readings} on ${group.days} days`, group.typed > 0 && `${group.typed} entered manually`, group.in_range_percent !== null
    && `${group.in_range_percent} % in range`,
  group.morning.readings > 0 && `morning ${mean(group.morning, unit)}`, group.evening.readings > 0
    && `evening ${mean(group.evening, unit)}`,
  group.change_kg !== undefined && `change ${group.change_kg > 0 ? "+" : ""}${displayedChange(group.change_kg, "kg")} ${unitOf("kg")}`,
].filter(Boolean).join(", ")}</small>`);

/** @param {{id: string, turn: number}} props */
export function Averages({ id, turn }) {
  const from = useLoad((signal) => get(`patients/${id}/vitals/summary/`, {}, signal), [id, turn]);
  return html`<section aria-labelledby="averages"><h2 id="averages">Averages</h2>
    <${Loaded} from=${from}>${(/** @type {Summary} */ summary) => html`
    <div class="card"><${Table} zone=${false} caption="Averages of the last days" keyOf=${(/** @type {any} */ row) =>
      row.type} rows=${rowsOf(summary)} columns=${[
      { name: "name", head: "Reading" },
      ...summary.periods.map(({ days }) => ({ name: String(days), head: `${days} days`, cell: (/** @type {any} */ row) =>
        cell(row[days], row.unit) })),
    ]} /></div>`}</${Loaded}></section>`;
}

/** @param {Summary} summary */
const rowsOf = (summary) =>
  readingTypes.map(([type, name]) =>
  ({ type, name, unit: unitsOf[type] ?? "", ...Object.fromEntries(summary.periods.map((/** @type {any} */ period) =>
  [period.days, period[type]])) }))
  .filter((/** @type {any} */ row) => summary.periods.some(({ days }) => row[days]?.readings > 0));
