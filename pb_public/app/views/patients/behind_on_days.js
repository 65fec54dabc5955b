// Patients who are behind on days with readings, to call today; fewest days to spare first. Amounts are not shown: the list is for the
// staff who call.
import { useQuery } from "../../query.js";
import { go } from "../../router.js";
import { Field } from "../../ui/form.js";
import { calendarDate, countOf } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { html } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["DaysShort"]} Short */

export function BehindOnDays() {
  const [query, setQuery] = useQuery({ behind: "true" });
  return html`<div class="filters" role="search" aria-label="Patients behind on days">
      <${Field} label="Show" name="behind" kind="select" value=${query.behind}
        options=${[["true", "On course to miss them"], ["", "All who still need days"]]}
        onChange=${(event) => setQuery({ behind: event.target.value })} /></div>
    <p class="soft">Each patient needs readings on the days that the payer’s first device code requires: 2 or 16 of 30.
      Patients who can miss the fewest days are first.</p>
    <${List} path="patients/data-days/" query=${query} caption="Patients behind on days" columns=${columns} zone=${false}
      keyOf=${(/** @type {Short} */ row) => row.patient_id} open=${(/** @type {Short} */ row) => go("patient", { id: row.patient_id })}
      nothing=${query.behind ? "No patients are behind. Show “All who still need days” for the others" : "No patients need more days"} />`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "patient_name", head: "Patient", cell: (row) => html`<bdi>${row.patient_name}</bdi> · ${row.mrn}` },
  { name: "phone", head: "Call", cell: (row) => (row.phone ? html`<a class="nowrap" data-patient=${row.patient_id}
    href=${`tel:${row.phone.replace(/[^\d+]/g, "")}`}>${row.phone}</a>` : "No number") },
  { name: "days", head: "Days so far", cell: (row) => html`<div class="near"><span>${row.days} of ${row.days_needed}</span>
    <progress max=${row.days_needed} value=${row.days} aria-label=${`${row.days} of ${row.days_needed} days`}></progress></div>` },
  { name: "days_to_go", head: "Still needed", cell: (row) => countOf(row.days_to_go, "day") },
  { name: "days_left", head: "Days left", cell: (row) => html`<span class="nowrap">${countOf(row.days_left, "day")}</span><span
    class="two">until ${calendarDate(row.last_day)}</span>` },
  { name: "days_to_spare", head: "Can miss", cell: (row) => (row.days_to_spare === 0
    ? html`<strong><span class="mark warning" aria-hidden="true">◆</span> None: every day is needed</strong>`
    : html`${row.behind && html`<span class="mark warning" aria-hidden="true">◆</span> `}${countOf(row.days_to_spare, "day")}`) },
];
