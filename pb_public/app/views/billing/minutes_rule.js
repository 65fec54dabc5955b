// What each rule of minutes makes of the month: the practice decides once which one it follows.
import { get } from "../../api.js";
import { money } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { html } from "../../view.js";

/** @type {[string, string][]} */
export const minutesRules = [["", "As the practice"], ["interactive", "Live contact only"], ["care_management", "Care management too"]];

export function MinutesRule() {
  const rules = useLoad((signal) => get("billing/minutes-rule/", {}, signal), []);
  return html`<section class="card"><h2>Which minutes count</h2>
    <${Loaded} from=${rules}>${(data) => html`${!data.decided && html`<p class="notice warning">Decide once which time counts for
      99457, 99458 and 99470, and set it as VIGIL_BILLING_TIME_RULE. Until then only live contact counts.</p>`}
      <p>A payer with a rule of its own comes first. This month under each rule:</p>
      <${Table} caption="Rules of minutes" rows=${data.rules} keyOf=${(row) => row.rule} columns=${columns} />`}</${Loaded}></section>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "rule", head: "Rule", cell: (row) => minutesRules.find(([key]) => key === row.rule)?.[1] },
  { name: "in_force", head: "In force", cell: (row) => (row.in_force ? "Yes" : "–") },
  { name: "minutes", head: "Minutes", number: true }, { name: "patients", head: "Patients", number: true },
  { name: "expected", head: "Expected", number: true, cell: (row) => money(row.expected) },
];
