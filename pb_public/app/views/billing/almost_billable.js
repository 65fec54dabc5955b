// Patients who are close to a billable code: what is missing, by when, and its worth. Highest priority first.
import { get } from "../../api.js";
import { useQuery } from "../../query.js";
import { go } from "../../router.js";
import { Field } from "../../ui/form.js";
import { calendarDate, money, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Pages, Table } from "../../ui/table.js";
import { html } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["NearPatient"]} Near */

const orders = /** @type {[string, string][]} */ ([["-worth", "Highest worth"], ["missing", "Least missing"]]);

const pageSize = 50;

const units = /** @type {[string, string][]} */ ([["", "Days or minutes"], ["days", "Days with readings"], ["minutes", "Minutes"]]);

const about = "A timely reading or call makes these billable. Worth is counted for the missing days or minutes, beyond "
  + "what the period already earns.";

export function NearBillable() {
  const [query, setQuery] = useQuery({ near: "-worth", missing: "", page: 1 });
  const near = useLoad((signal) => get("billing/near-billable/", { ordering: query.near, unit: query.missing, page: query.page,
    page_size: pageSize }, signal), [query.near, query.missing, query.page]);
  return html`<div class="filters" role="search" aria-label="Which patients first">
      <${Field} label="Missing" name="missing" kind="select" value=${query.missing} options=${units}
        onChange=${(event) => setQuery({ missing: event.target.value, page: 1 })} />
      <${Field} label="Sort by" name="near" kind="select" value=${query.near} options=${orders}
        onChange=${(event) => setQuery({ near: event.target.value, page: 1 })} /></div>
    <p class="soft">${about}</p>
    <${Loaded} from=${near} empty=${(data) => data.count === 0} nothing=${html`<${EmptyState}
      title="No patients are close to a code">Patients appear here when a few days or minutes are missing.</${EmptyState}>`}>
      ${(data) => html`<${Table} caption="Almost billable patients" rows=${data.results} columns=${columns}
        keyOf=${(/** @type {Near} */ row) => `${row.patient_id} ${row.cpt_code} ${row.period_start}`}
        open=${(/** @type {Near} */ row) => go("patient", { id: row.patient_id, tab: "bill" })} zone=${false} />
        <${Pages} page=${query.page} count=${data.count} size=${pageSize} turn=${(page) => setQuery({ page })} />`}
    </${Loaded}>`;
}

/** @type {Record<string, string>} */
const against = { not_active: "Not enrolled", missing_consent: "No consent", missing_diagnosis: "No diagnosis" };

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "patient_name", head: "Patient", cell: (row) => html`<bdi>${row.patient_name}</bdi> · ${row.mrn}` },
  { name: "cpt_code", head: "Code" },
  { name: "missing", head: "Missing", cell: (row) => html`<strong>${row.missing}</strong>` },
  { name: "have", head: "So far", cell: (row) => html`<div class="near"><span>${row.have} of ${row.needed} ${row.unit}</span>
    <progress max=${row.needed} value=${row.have} aria-label=${`${row.have} of ${row.needed} ${row.unit}`}></progress></div>` },
  { name: "until", head: "Start by", cell: (row) => html`<span class="nowrap">${calendarDate(row.until)}</span><span
    class="two">${row.days_left} ${row.days_left === 1 ? "day" : "days"} left</span>` },
  { name: "gain", head: "Worth", number: true, cell: (row) => money(row.gain) },
  { name: "gain_per_unit", head: "Per day or minute", number: true, cell: (row) => html`<span
    class="nowrap">${money(row.gain_per_unit)} a ${row.unit.slice(0, -1)}</span>` },
  { name: "against", head: "Blocked by", cell: (row) => (row.against.length > 0 ? html`<span class="mark warning"
    aria-hidden="true">◆</span> ${row.against.map((/** @type {string} */ code) => against[code] ?? humanize(code)).join(", ")}` : "") },
];
