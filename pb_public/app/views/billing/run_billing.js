// Runs billing now, and shows the created and skipped entries with reasons.
import { post } from "../../api.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { humanize } from "../../ui/format.js";
import { Table } from "../../ui/table.js";
import { html, useState } from "../../view.js";

const jobs = /** @type {[string, string][]} */ ([["all", "Device and time codes"], ["device", "Device codes"], ["time", "Time codes"]]);

/** @param {{close: () => void, done: () => void}} props */
export function RunBilling({ close, done }) {
  const [run, setRun] = useState(/** @type {any} */ (null));
  return html`<${Dialog} wide=${run !== null} title="Run billing" close=${close}>
    ${run ? html`<${Outcome} run=${run} close=${close} />` : html`
      <p>Billing runs automatically every night. Run it now to see today’s entries; nothing is billed twice.</p>
      <${Form} submit="Run" cancel=${close} send=${(values) => post("billing/run/", values)}
        done=${(answer) => { setRun(answer); done(); }}>
        ${(errors) => html`
        <${Field} label="Codes" name="job" kind="select" value="all" options=${jobs} errors=${errors} />`}
      </${Form}>`}
  </${Dialog}>`;
}

/** @param {{run: any, close: () => void}} props */
function Outcome({ run, close }) {
  const made = tally(run.created, (one) => one.cpt_code);
  const left = tally(run.skipped, (one) => `${one.cpt_code} ${one.reason}`);
  return html`<p role="status"><strong>${run.created.length} created</strong>, ${run.skipped.length} skipped.</p>
    ${made.length > 0 && html`<${Table} caption="Created entries by code" rows=${made} keyOf=${(row) => row.key} columns=${[
      { name: "key", head: "Code" }, { name: "count", head: "Created", number: true }]} />`}
    ${left.length > 0 && html`<h3>Skipped</h3><${Table} caption="Skipped by code and reason" rows=${left} keyOf=${(row) => row.key}
      columns=${[
      { name: "code", head: "Code", cell: (row) => row.key.slice(0, 5) }, { name: "reason", head: "Reason", cell: (row) =>
        humanize(row.key.slice(6)) }, { name: "count", head: "Patients", number: true }]} />`}
    <div class="actions"><button class="main" onClick=${close}>Done</button></div>`;
}

/** @param {any[]} rows @param {(row: any) => string} keyOf */
function tally(rows, keyOf) {
  const counts = new Map();
  for (const row of rows) {
    counts.set(keyOf(row), (counts.get(keyOf(row)) ?? 0) + 1);
  }
  return [...counts].map(([key, count]) => ({ key, count })).sort((a, b) => a.key.localeCompare(b.key));
}
