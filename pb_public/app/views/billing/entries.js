// The list of entries with filters. Billing staff submit several at once or add a manual charge.
import { getAll, get } from "../../api.js";
import { can } from "../../permissions.js";
import { useQuery } from "../../query.js";
import { go, place } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { Field } from "../../ui/form.js";
import { calendarDate, money, humanize } from "../../ui/format.js";
import { PatientPicker } from "../../ui/patient_picker.js";
import { useLoad } from "../../ui/states.js";
import { List } from "../../ui/table.js";
import { html, useState } from "../../view.js";
import { ManualEntry } from "./manual_charge.js";
import { SubmitMany } from "./submit_many.js";
import { states, stateName } from "./labels.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["BillingEntry"]} Entry */

const sources = /** @type {[string, string][]} */ ([["", "Any source"], ...["automatic_device", "automatic_setup", "automatic_time",
  "escalation", "manual"].map((source) => [source, humanize(source)])]);

/** The codes and payers for filters and forms. */
export function useChoices() {
  const codes = useLoad((signal) => get("billing/cpt-codes/", { page_size: 100 }, signal), []);
  const payers = useLoad(() => getAll("billing/payers/", {}, Infinity), []);
  return {
    codes: /** @type {[string, string][]} */ ((codes.data?.results ?? []).map((c) => [c.code, `${c.code} ${c.description}`])),
    billable: /** @type {[string, string][]} */ ((codes.data?.results ?? []).filter((c) => c.billable).map((c) =>
      [c.code, `${c.code} ${c.description}`])),
    payers: /** @type {[string, string][]} */ ((payers.data ?? []).map((p) => [String(p.id), p.name])),
  };
}

const open = { search: "", status: "", cpt_code: "", payer_id: "", source: "", patient_id: "", date_from: "", date_to: "" };

/** @param {{turn: number}} props turn counts changes */
export function Entries({ turn: outside }) {
  const [filters, setFilters] = useQuery(open, ["patient_id", "search"]);
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [dialog, setDialog] = useState(/** @type {"" | "manual" | "submit"} */ (""));
  const [revision, setRevision] = useState(0);
  const choices = useChoices();
  const narrow = (/** @type {Partial<typeof filters>} */ change) => { setFilters(change); setSelected(new Set()); };
  const toggle = (/** @type {string} */ id) => {
    const next = new Set(selected);
    next.delete(id) || next.add(id);
    setSelected(next);
  };
  const changed = () => { setRevision(revision + 1); setSelected(new Set()); };
  const narrowed = Object.values(filters).some(Boolean);
  return html`<div class="bar-of-acts">
      <span role="status">${selected.size > 0 ? `${selected.size} selected` : ""}</span>
      ${can("manageBilling") && html`<button class=${selected.size > 0 ? "main" : ""}
        onClick=${() => setDialog("submit")}>${selected.size > 0
        ? `Submit ${selected.size} claims` : "Submit all reviewed"}</button>`}
      ${can("createBilling") && html`<button onClick=${() => setDialog("manual")}>Add charge</button>`}
    </div>
    <${Filters} filters=${filters} narrow=${narrow} choices=${choices} />
    <${List} path="billing/entries/" name="entries" nothing=${narrowed ? "No entries match"
      : can("manageBilling") ? "No entries yet. Billing runs every night; to run it now, use “Run billing”."
      : "No entries yet. Billing runs every night."}
      query=${filters} caption="Billing entries" turn=${revision + outside} ordering="-service_date" open=${openEntry}
        columns=${columns(selected,
        toggle)} zone=${false} />
    ${dialog === "manual" && html`<${ManualEntry} codes=${choices.billable} close=${() => setDialog("")} />`}
    ${dialog === "submit" && html`<${SubmitMany} find=${() => (selected.size > 0 ? Promise.resolve([...selected]) : reviewed(filters))}
      close=${() => setDialog("")} done=${changed} />`}`;
}

/** Opens an entry, with the ids of the entries after it in the list for “next”.
 *  @param {Entry} entry */
export function openEntry(entry) {
  const ids = [...document.querySelectorAll("tr[data-key]")].map((row) => /** @type {HTMLElement} */ (row).dataset.key ?? "");
  go("entry", { id: entry.id, then: ids.slice(ids.indexOf(entry.id) + 1), back: { query: place.value.query, hidden: place.value.hidden } });
}

/** The ids of the reviewed entries that match the filters, up to the limit of one call. @param {Record<string, string>} filters */
const reviewed = (filters) => getAll("billing/entries/", { ...filters, status: "reviewed" }, 1000).then((entries) =>
  entries.slice(0, 1000).map((entry) => entry.id));

/** @param {{filters: Record<string, string>, narrow: (change: any) => void, choices: ReturnType<typeof useChoices>}} props */
function Filters({ filters, narrow, choices }) {
  const choice = (/** @type {string} */ label, /** @type {string} */ name, /** @type {[string, string][]} */ options) => html`
    <${Field} label=${label} name=${name} kind="select" value=${filters[name]} options=${options} onChange=${(event) =>
      narrow({ [name]: event.target.value })} />`;
  return html`<div class="filters no-print" role="search" aria-label="Filter the entries">
    <${Field} label="Find" name="search" kind="search" value=${filters.search} maxlength="100"
      hint="Claim number, payer’s number, MRN or name"
      onChange=${(event) => narrow({ search: event.target.value.trim() })} />
    ${choice("State", "status", states)}
    ${choice("Code", "cpt_code", [["", "All codes"], ...choices.codes])}
    ${choice("Payer", "payer_id", [["", "All payers"], ...choices.payers])}
    ${choice("Source", "source", sources)}
    <${Field} label="From" name="date_from" kind="date" value=${filters.date_from} onChange=${(event) =>
      narrow({ date_from: event.target.value })} />
    <${Field} label="To" name="date_to" kind="date" value=${filters.date_to} onChange=${(event) =>
      narrow({ date_to: event.target.value })} />
    <${PatientPicker} label="Patient" chosen=${(patient) => narrow({ patient_id: patient?.id ?? "" })} />
    ${filters.patient_id && html`<button type="button" onClick=${() => narrow({ patient_id: "" })}>All patients</button>`}
  </div>`;
}

/** @param {Set<string>} chosen @param {(id: string) => void} toggle @returns {import("../../ui/table.js").Column[]} */
const columns = (chosen, toggle) => [
  { name: "claim_id", head: "Claim", cell: (entry) => html`<span class="nowrap">${entry.claim_id}</span>` },
  { name: "patient_name", head: "Patient", cell: (entry) => html`<bdi>${entry.patient_name}</bdi>` },
  { name: "cpt_code", head: "Code", cell: (entry) => (entry.units > 1 ? `${entry.cpt_code} × ${entry.units}` : entry.cpt_code) },
  { name: "service_date", head: "Service date", order: "service_date", cell: (entry) => calendarDate(entry.service_date) },
  ...(can("readRevenue") ? [{ name: "amount", head: "Amount", number: true, order: "amount", cell: (entry) => money(entry.amount) },
    { name: "payer", head: "Payer" }] : []),
  { name: "lifecycle_status", head: "State", cell: (entry) =>
    html`<${Badge} of=${entry.lifecycle_status} text=${stateName(entry.lifecycle_status)} />` },
  { name: "warnings", head: "Flags", cell: (entry) =>
    (entry.warnings.length > 0 ? html`<${Badge} of="warning" text=${entry.warnings.map(humanize).join(", ")} />` : "") },
  ...(can("manageBilling") ? [{ name: "choose", head: "Submit", cell: (entry) => entry.lifecycle_status === "reviewed" && html`
    <input type="checkbox" aria-label=${`Select ${entry.claim_id} for submission`} checked=${chosen.has(entry.id)} onChange=${() =>
      toggle(entry.id)} />` }] : []),
];
