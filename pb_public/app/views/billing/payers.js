// Payers and their rates by code and effective date.
import { getAll, get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { calendarDate, money } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";
import { minutesRules } from "./minutes_rule.js";
import { PayerDialog } from "./payer_dialog.js";

export function Payers() {
  const payers = useLoad(() => getAll("billing/payers/", {}, Infinity), []);
  const codes = useLoad((signal) => get("billing/cpt-codes/", { page_size: 100 }, signal), []);
  const [dialog, setDialog] = useState(/** @type {"" | "payer" | "rate"} */ (""));
  const [payer, setPayer] = useState(/** @type {any} */ (null)); // to change; null for a new one
  const openPayer = (/** @type {any} */ row) => { setPayer(row); setDialog("payer"); };
  const [revision, setRevision] = useState(0); // of the rates
  const close = () => setDialog("");
  return html`<div class="split">
    <section class="card"><div class="bar-of-acts"><h2>Rates</h2>${can("manageBilling") && payers.data && payers.data.length > 0
      && html`<button onClick=${() => setDialog("rate")}>Add a rate</button>`}</div>
      <${List} path="billing/payer-rates/" turn=${revision} caption="Rates" nothing="No rates. The default rate of each code applies"
        keyOf=${(row) =>
        `${row.payer_id} ${row.cpt_code} ${row.effective_date}`} columns=${rateColumns} />
      <h2>Default rates</h2>
      <${Loaded} from=${codes}>${(data) => html`<${Table} caption="Codes with their default rates" rows=${data.results} keyOf=${(row) =>
        row.code} columns=${codeColumns} />`}</${Loaded}>
    </section>
    <section class="card"><div class="bar-of-acts"><h2>Payers</h2>${can("manageBilling")
      && html`<button onClick=${() => openPayer(null)}>Add a payer</button>`}</div>
      <${Loaded} from=${payers} empty=${(data) => data.length === 0} nothing=${html`<${EmptyState} title="No payers">
        Entries of patients without a payer are self-pay.</${EmptyState}>`}>
        ${(data) => html`<${Table} caption="Payers" rows=${data} columns=${payerColumns(openPayer)} />`}</${Loaded}>
    </section></div>
    ${dialog === "payer" && html`<${PayerDialog} payer=${payer} close=${close} done=${payers.reload} />`}
    ${dialog === "rate" && html`<${RateDialog} payers=${payers.data} codes=${codes.data?.results ?? []} close=${close} done=${() =>
      setRevision(revision + 1)} />`}`;
}

/** @type {import("../../ui/table.js").Column[]} */
const rateColumns = [
  { name: "payer", head: "Payer" }, { name: "cpt_code", head: "Code" }, { name: "rate", head: "Rate", number: true, cell: (row) =>
    money(row.rate) },
  { name: "effective_date", head: "From", cell: (row) => calendarDate(row.effective_date) },
];
/** @type {import("../../ui/table.js").Column[]} */
const codeColumns = [
  { name: "code", head: "Code" }, { name: "description", head: "Description", cell: (row) =>
    html`${row.description}<span class="two">${row.requirement}</span>` },
  { name: "default_rate", head: "Default rate", number: true, cell: (row) =>
    (row.default_rate_max ? `${money(row.default_rate)} – ${money(row.default_rate_max)}` : money(row.default_rate)) },
];
/** @param {(row: any) => void} open @returns {import("../../ui/table.js").Column[]} */
const payerColumns = (open) => [
  { name: "name", head: "Name", cell: (row) => html`<button class="link" onClick=${() => open(row)}>${row.name}</button>` },
  { name: "payer_id", head: "Payer ID" },
  { name: "minutes_rule", head: "Minutes", cell: (row) => minutesRules.find(([key]) => key === (row.minutes_rule ?? ""))?.[1] },
  { name: "is_active", head: "State", cell: (row) => html`<${Badge} of=${row.is_active ? "online" : ""} text=${row.is_active ? "Active"
    : "Inactive"} />` },
];

/** @param {{payers: any[], codes: any[], close: () => void, done: () => void}} props */
const RateDialog = ({ payers, codes, close, done }) => html`<${Dialog} title="Add a rate" close=${close}>
  <${Form} submit="Add" cancel=${close} send=${(values) => post("billing/payer-rates/", { ...values, payer_id: Number(values.payer_id) })}
    done=${() => { toast("Added."); close(); done(); }}>${(errors) => html`
    <${Field} label="Payer" name="payer_id" kind="select" value=${String(payers[0].id)} options=${payers.map((p) => [String(p.id), p.name])}
      errors=${errors} />
    <${Field} label="Code" name="cpt_code" kind="select" value=${codes[0]?.code} options=${codes.map((c) => [c.code, c.code])}
      errors=${errors} />
    <div class="fields"><${Field} label="Rate in dollars" name="rate" kind="number" min="0" step="0.01" errors=${errors} />
    <${Field} label="From" name="effective_date" kind="date" errors=${errors} /></div>`}
  </${Form}>
</${Dialog}>`;
