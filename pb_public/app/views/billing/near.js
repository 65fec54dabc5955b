// Patients who are closest to a code, and what each still needs.
import { get } from "../../api.js";
import { go } from "../../router.js";
import { calendarDate } from "../../ui/format.js";
import { Loaded, Nothing, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { html } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["NearPatient"]} Near */

export function NearBillable() {
  const near = useLoad((signal) => get("billing/near-billable/", {}, signal), []);
  return html`<p class="soft">A reading or a call in time makes these billable. The least missing first.</p>
    <${Loaded} from=${near} empty=${(data) => data.count === 0} nothing=${html`<${Nothing} title="Nobody is close to a code">Patients appear here when a few days or minutes are missing.</${Nothing}>`}>
      ${(data) => html`<${Table} caption="Nearly billable patients" rows=${data.results} columns=${columns} keyOf=${(/** @type {Near} */ row) => `${row.patient_id} ${row.cpt_code} ${row.period_start}`}
        open=${(/** @type {Near} */ row) => go("patient", { id: row.patient_id })} />`}
    </${Loaded}>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "patient_name", head: "Patient", cell: (row) => `${row.patient_name} · ${row.mrn}` },
  { name: "cpt_code", head: "Code" },
  { name: "missing", head: "Missing", cell: (row) => html`<strong>${row.missing}</strong>` },
  { name: "have", head: "So far", cell: (row) => html`<div class="near"><span>${row.have} of ${row.needed} ${row.unit}</span>
    <progress max=${row.needed} value=${row.have} aria-label=${`${row.have} of ${row.needed} ${row.unit}`}></progress></div>` },
  { name: "period", head: "Period", cell: (row) => `${calendarDate(row.period_start)} – ${calendarDate(row.period_end)}` },
  { name: "days_left", head: "Days left", number: true },
];
