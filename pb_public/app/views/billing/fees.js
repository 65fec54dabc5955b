// The fee schedule: charge and expected payment by code, locality and date, and its import.
import { call } from "../../api.js";
import { can } from "../../permissions.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { calendarDate, humanize, money } from "../../ui/format.js";
import { List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

export function Fees() {
  const [open, setOpen] = useState(false);
  const [revision, setRevision] = useState(0);
  return html`<section class="card"><div class="bar-of-acts"><h2>Fee schedule</h2>${can("manageBilling")
    && html`<button onClick=${() => setOpen(true)}>Import fee schedule</button>`}</div>
    <p>A payer’s rate overrides the expected amount. Without a charge, the expected amount is charged. Proposed fees set no amount, and the
      list that came with Vigil only the least charge, until you check and import it.</p>
    <${List} path="billing/fee-schedule/" turn=${revision} caption="Fees" nothing="No fees. The default rate of each code applies"
      keyOf=${(row) =>
      `${row.cpt_code} ${row.locality} ${row.effective_date}`} columns=${columns} />
    ${open && html`<${ImportDialog} close=${() => setOpen(false)} done=${() => setRevision(revision + 1)} />`}</section>`;
}

/** @param {number | null} amount */
const amountText = (amount) => (amount === null ? "–" : money(amount));

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "cpt_code", head: "Code" }, { name: "locality", head: "Locality", cell: (row) => row.locality || "National" },
  { name: "effective_date", head: "From", cell: (row) => calendarDate(row.effective_date) },
  { name: "charge", head: "Charge", number: true, cell: (row) => amountText(row.charge) },
    { name: "expected", head: "Expected", number: true,
    cell: (row) => amountText(row.expected) },
  { name: "status", head: "Status", cell: (row) => (row.shipped ? "Came with Vigil" : humanize(row.status)) },
  { name: "source", head: "Source" },
];

/** @param {{close: () => void, done: () => void}} props */
function ImportDialog({ close, done }) {
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const send = (/** @type {any} */ values) => call("POST", "billing/fee-schedule/import/", { body: String(values.list),
    query: preview ? {} : { preview: true } });
  const counts = (/** @type {any} */ answer) => `${answer.created} new, ${answer.replaced} replaced, ${answer.unchanged} unchanged.`;
  const sent = (/** @type {any} */ answer) => {
    if (preview) {
      toast(counts(answer));
      close();
      done();
    } else {
      setPreview(answer);
    }
  };
  return html`<${Dialog} title="Import fee schedule" close=${close}>
  <${Form} submit=${preview ? "Import" : "Preview"} cancel=${close} send=${send} done=${sent}>
      ${(errors) => html`
    <${Field} label="CSV" name="list" kind="textarea" rows="10" onInput=${() => setPreview(null)}
      hint="Columns: cpt_code,locality,effective_date,charge,expected,source; optionally status (final, proposed)"
      errors=${errors} />
    ${Object.entries(errors).length > 0
      && html`<ul>${Object.entries(errors).map(([cell, messages]) => html`<li key=${cell}>${cell}: ${messages.join(" ")}</li>`)}</ul>`}
    ${preview && html`<p>${counts(preview)}</p><${Table} caption="Changes" rows=${preview.changes} columns=${changeColumns}
      keyOf=${(row) => `${row.cpt_code} ${row.locality} ${row.effective_date}`} />`}`}
  </${Form}>
</${Dialog}>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const changeColumns = [
  { name: "cpt_code", head: "Code" }, { name: "effective_date", head: "From", cell: (row) => calendarDate(row.effective_date) },
  { name: "charge", head: "Charge", cell: (row) => `${amountText(row.charge_before)} → ${amountText(row.charge)}` },
  { name: "expected", head: "Expected", cell: (row) => `${amountText(row.expected_before)} → ${amountText(row.expected)}` },
];
