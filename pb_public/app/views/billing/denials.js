// Denied claims: why, what to do about each, and until when.
import { useQuery } from "../../query.js";
import { Field } from "../../ui/form.js";
import { calendarDate, money } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { html } from "../../view.js";
import { openEntry, useChoices } from "./entries.js";
import { dueText, nextSteps } from "./labels.js";

/** @param {{turn: number}} props turn counts changes */
export function Denials({ turn }) {
  const [filters, setFilters] = useQuery({ payer_id: "" });
  const { payers } = useChoices();
  return html`<section class="card"><h2>Denials</h2>
    <div class="filters no-print" role="search" aria-label="Filter the denials">
      <${Field} label="Payer" name="payer_id" kind="select" value=${filters.payer_id} options=${[["", "All payers"], ...payers]}
        onChange=${(event) => setFilters({ payer_id: event.target.value })} /></div>
    <${List} path="billing/entries/" query=${{ status: "denied", ...filters }} turn=${turn} caption="Denied claims, oldest service first"
      ordering="service_date" nothing="No denied claims" open=${openEntry} columns=${columns} zone=${false} /></section>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "claim_id", head: "Claim", cell: (entry) => html`<span class="nowrap">${entry.claim_id}</span><span
    class="two"><bdi>${entry.patient_name}</bdi></span>` },
  { name: "cpt_code", head: "Code", cell: (entry) => html`${entry.cpt_code}<span class="two">${calendarDate(entry.service_date)}</span>` },
  { name: "payer", head: "Payer" },
  { name: "reason", head: "Denied for", cell: ({ denial }) => html`${denial.code}: ${denial.description}<span
    class="two">${[calendarDate(denial.date), ...denial.remarks].join(", ")}</span>` },
  { name: "next_step", head: "Next step", cell: ({ denial }) => html`${nextSteps[denial.next_step]}<span
    class="two">${dueText(denial)}</span>` },
  { name: "open", head: "Open", number: true, cell: (entry) => money(entry.open) },
];
