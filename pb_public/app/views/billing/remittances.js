// Remittances: each payment of a payer with what was posted, and what a person still has to resolve.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { useQuery } from "../../query.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { calendarDate, dateTime, money } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Facts, List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["RemittanceWithLines"]} Remittance */

const states = /** @type {[string, string][]} */ ([["", "All"], ["open", "Open"], ["balanced", "Balanced"], ["closed", "Closed"]]);
const methods = { ACH: "EFT", CHK: "Check", FWT: "Wire", BOP: "Payer’s choice", NON: "No payment" };

/** @param {{turn: number}} props turn counts changes */
export function Remittances({ turn }) {
  const [filters, setFilters] = useQuery({ remittance_status: "" });
  const [revision, setRevision] = useState(0);
  const [opened, setOpened] = useState("");
  const changed = () => setRevision(revision + 1);
  return html`<section class="card"><h2>Remittances</h2>
    <div class="filters no-print" role="search" aria-label="Filter the remittances">
      <${Field} label="State" name="remittance_status" kind="select" value=${filters.remittance_status} options=${states}
        onChange=${(event) => setFilters({ remittance_status: event.target.value })} /></div>
    <${List} path="billing/remittances/" query=${{ status: filters.remittance_status }} turn=${turn + revision} caption="Remittances"
      nothing=${filters.remittance_status ? "No remittances in this state" : "No remittances yet. Upload an 835 under “Responses”."}
      open=${(row) => setOpened(row.id)} columns=${columns} />
    ${opened && html`<${RemittanceDialog} id=${opened} close=${() => setOpened("")} changed=${changed} />`}</section>`;
}

/** @param {{code: string, amount: number}[]} list */
const adjustmentsText = (list) => list.map((part) => `${part.code} ${money(part.amount)}`).join(", ") || "–";

/** @param {{status: string}} props */
const StateBadge = ({ status }) => html`<${Badge} of=${{ open: "warning", balanced: "normal" }[status] ?? ""}
  text=${states.find(([code]) => code === status)?.[1]} />`;

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "trace_number", head: "Trace number" }, { name: "payer", head: "Payer" },
  { name: "payment_date", head: "Paid on", cell: (row) => calendarDate(row.payment_date) },
  { name: "method", head: "Method", cell: (row) => methods[row.method] ?? row.method },
  { name: "payment_amount", head: "Payment", number: true, cell: (row) => money(row.payment_amount) },
  { name: "posted", head: "Posted", number: true, cell: (row) => money(row.posted) },
  { name: "unposted", head: "Unposted", number: true, cell: (row) => money(row.unposted) },
  { name: "provider_adjustments", head: "Provider adjustments", cell: (row) => adjustmentsText(row.provider_adjustments) },
  { name: "status", head: "State", cell: (row) => html`<${StateBadge} status=${row.status} />` },
];

/** @param {{id: string, close: () => void, changed: () => void}} props */
function RemittanceDialog({ id, close, changed }) {
  const [closing, setClosing] = useState(/** @type {number | "all" | null} */ (null)); // an item's ordinal
  const remittance = useLoad((signal) => get(`billing/remittances/${id}/`, {}, signal), [id]);
  const closed = () => { toast("Closed. No money was moved."); setClosing(null); remittance.reload(); changed(); };
  return html`<${Dialog} wide title="Remittance" close=${close}><${Loaded} from=${remittance}>${(/** @type {Remittance} */ r) => html`
    <${Facts} of=${facts(r)} />
    ${r.items.length > 0 && html`<h3>To resolve</h3>
      <${Table} caption="Items to resolve" rows=${r.items} keyOf=${(item) => item.ordinal} columns=${itemColumns(setClosing)} />`}
    ${r.status === "open" && can("manageBilling") && r.items.filter((item) => !item.closed_at).length > 1
      && html`<button type="button" onClick=${() => setClosing("all")}>Close all items</button>`}
    ${closing !== null && html`<${Form} submit="Close" cancel=${() => setClosing(null)} done=${closed} send=${(values) =>
      post(closing === "all" ? `billing/remittances/${id}/close/` : `billing/remittances/${id}/items/${closing}/close/`, values)}>
      ${(errors) => html`<${Field} label=${closing === "all" ? "How were the items resolved?" : "How was the item resolved?"} name="notes"
        kind="textarea" maxlength="4000" errors=${errors} />`}</${Form}>`}
    <h3>Posted</h3>
    ${r.lines.length === 0 ? html`<p>Nothing was posted.</p>`
      : html`<${PostedLines} lines=${r.lines} />`}`}</${Loaded}></${Dialog}>`;
}

/** A payment that is not posted yet: its sums, what a person will have to resolve, and its lines.
 *  @param {{remittance: Remittance}} props */
export const RemittanceSums = ({ remittance: r }) => html`<${Facts} of=${facts(r)} />
  ${r.items.length > 0 && html`<h3>To resolve</h3>
    <${Table} caption="Items to resolve" rows=${r.items} keyOf=${(item) => item.ordinal}
      columns=${itemColumns(() => {}).slice(0, 3)} />`}
  ${r.lines.length > 0 && html`<h3>To post</h3><${PostedLines} lines=${r.lines} />`}`;

/** @param {{lines: Remittance["lines"]}} props */
const PostedLines = ({ lines }) => html`<${Table} caption="Posted lines" rows=${lines} keyOf=${(line) =>
  `${line.entry_id} ${line.kind} ${line.amount}`} columns=${lineColumns} />`;

/** @param {Remittance} r @returns {[any, any][]} */
const facts = (r) => [["Payer", r.payer], ["Trace number", r.trace_number], ["Paid on", calendarDate(r.payment_date)],
  ["Method", methods[r.method] ?? r.method], ["Payment", money(r.payment_amount)], ["Posted", money(r.posted)],
  ["Unposted", money(r.unposted)], ["Provider adjustments", adjustmentsText(r.provider_adjustments)],
  ["State", html`<${StateBadge} status=${r.status} />`],
  ...(r.closed_at ? /** @type {[any, any][]} */ ([["Closed", `${r.closed_by}, ${dateTime(r.closed_at)}: ${r.notes}`]]) : [])];

/** @param {string[]} ids */
const entryLinks = (ids) => ids.map((id, i) => html`<button class="link" key=${id} onClick=${() => go("entry", { id })}>${ids.length > 1
  ? `Entry ${i + 1}` : "Entry"}</button> `);

/** @param {(ordinal: number) => void} start @returns {import("../../ui/table.js").Column[]} */
const itemColumns = (start) => [
  { name: "claim_control_number", head: "Claim or reference", cell: (item) => html`${item.claim_control_number ?? item.reference ?? "–"}
    ${item.payer_control_number && html`<span class="two">Payer’s number ${item.payer_control_number}</span>`}` },
  { name: "reason_text", head: "Reason" },
  { name: "amount", head: "Amount", number: true, cell: (item) => money(item.amount) },
  { name: "entry_ids", head: "Entry", cell: (item) => entryLinks(item.entry_ids) },
  { name: "closed_at", head: "State", cell: (item) => (item.closed_at
    ? html`Closed<span class="two">${item.closed_by}, ${dateTime(item.closed_at)}: ${item.notes}</span>`
    : can("manageBilling") ? html`<button onClick=${() => start(item.ordinal)} aria-label=${`Close item ${item.ordinal}`}>Close</button>`
    : "Open") },
];

/** @type {import("../../ui/table.js").Column[]} */
const lineColumns = [
  { name: "claim_id", head: "Claim", cell: (line) => html`<button class="link" onClick=${() => go("entry", { id: line.entry_id })}>
    ${line.claim_id}</button>` },
  { name: "cpt_code", head: "Code", cell: (line) => html`${line.cpt_code}${lineWarnings(line).map((text) => html`<span class="two">${text}
    </span>`)}` },
  { name: "claim_control_number", head: "Claim number" }, { name: "payer_control_number", head: "Payer’s number" },
  { name: "kind", head: "Kind", cell: (line) => kinds[line.kind] },
  { name: "amount", head: "Amount", number: true, cell: (line) => money(line.amount) },
];

/** @param {Remittance["lines"][number]} line @returns {string[]} */
const lineWarnings = (line) => line.warnings.map((warning) => (warning === "other_code" ? `Paid as ${line.paid_code}`
  : "Paid before the service date"));

const kinds = { payment: "Payment", denial: "Denial", reversal: "Reversal", refund: "Refund" };
