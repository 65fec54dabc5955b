// Claims on their way: what a payer would refuse of a month, the files that left, and the answers that came back.
import { all, call, download, get, post } from "../../api.js";
import { can } from "../../can.js";
import { ActionButton, Field } from "../../ui/form.js";
import { dateTime, money, number, words } from "../../ui/format.js";
import { Loaded, Nothing, useLoad } from "../../ui/states.js";
import { List, Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { thisMonth } from "../../ui/when.js";
import { go } from "../../router.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["Preflight"]} Preflight */

// So many lines one file takes.
const most = 1000;

export function ClaimFiles() {
  const [turn, again] = useState(0);
  const changed = () => again(turn + 1);
  return html`<${Ready} turn=${turn} changed=${changed} />
    <section class="card"><h2>Files that left</h2>
      <${List} path="billing/claim-batches/" turn=${turn} caption="Files of claims" nothing="No file has left" columns=${fileColumns} /></section>
    <section class="card"><div class="bar-of-acts"><h2>Answers</h2>${can("manageBilling") && html`<${TakeIn} done=${changed} />`}</div>
      <${List} path="billing/claim-responses/" turn=${turn} caption="Answers of the clearinghouse" nothing="No answer has come" columns=${answerColumns} /></section>`;
}

/** What of a month can be sent, and what stands against the rest. @param {{turn: number, changed: () => void}} props */
function Ready({ turn, changed }) {
  const [month, choose] = useState(thisMonth());
  const lines = useLoad(async () => {
    const [found, reviewed] = await Promise.all([all("billing/preflight/", { month }, Infinity), all("billing/entries/", { status: "reviewed", ...daysOf(month) }, Infinity)]);
    const ready = new Set(reviewed.map((entry) => entry.id));
    return found.map((line) => ({ ...line, reviewed: ready.has(line.entry_id) }));
  }, [month, turn]);
  return html`<section class="card"><h2>To be sent</h2>
    <div class="filters" role="search" aria-label="Choose a month">
      <${Field} label="Month" name="month" kind="month" value=${month} onChange=${(/** @type {any} */ event) => choose(event.target.value || thisMonth())} />
    </div>
    <${Loaded} from=${lines} empty=${(data) => data.length === 0} nothing=${html`<${Nothing} title="Nothing waits">No entry of this month is to be sent.</${Nothing}>`}>
      ${(data) => {
        const sendable = data.filter((/** @type {any} */ line) => line.ok && line.reviewed && !line.warnings.some((/** @type {any} */ w) => w.code === "self_pay")).map((/** @type {Preflight} */ line) => line.entry_id);
        return html`<p>${number(sendable.length)} of ${number(data.length)} lines can be sent.</p>
          ${can("manageBilling") && sendable.length > 0 && html`<${ActionButton} act=${() => post("billing/claim-batches/", { entry_ids: sendable.slice(0, most) })} said="The file is made." done=${changed}>Make the file</${ActionButton}>`}
          <${Table} caption="Lines of the month" rows=${data} keyOf=${(/** @type {Preflight} */ line) => line.entry_id} columns=${lineColumns} open=${(/** @type {Preflight} */ line) => go("entry", { id: line.entry_id })} />`;
      }}</${Loaded}></section>`;
}

/** The first and last day of a month. @param {string} month */
function daysOf(month) {
  const [year, number] = month.split("-").map(Number);
  return { date_from: `${month}-01`, date_to: `${month}-${String(new Date(year, number, 0).getDate()).padStart(2, "0")}` };
}

/** @type {import("../../ui/table.js").Column[]} */
const lineColumns = [
  { name: "claim_id", head: "Claim" },
  { name: "ok", head: "State", cell: (row) => (row.ok ? (row.reviewed ? "Ready" : "To be reviewed") : "A payer would refuse it") },
  { name: "errors", head: "Why", cell: (row) => html`<ul>${[...row.errors, ...row.warnings].map((finding, i) => html`<li key=${i}>${finding.message}</li>`)}</ul>` },
];

/** @type {import("../../ui/table.js").Column[]} */
const fileColumns = [
  { name: "interchange_control_number", head: "Number" }, { name: "created_at", head: "Made", cell: (row) => dateTime(row.created_at) },
  { name: "claims", head: "Claims", number: true }, { name: "lines", head: "Lines", number: true },
  { name: "total_charge", head: "Charge", number: true, cell: (row) => money(row.total_charge) },
  { name: "status", head: "State", cell: (row) => `${words(row.status)}${row.usage === "T" ? ", test" : ""}` },
  { name: "id", head: "File", cell: (row) => can("manageBilling") && html`<${ActionButton} kind="quiet" act=${() => download(`billing/claim-batches/${row.id}/file/`, {}, `${row.interchange_control_number}.837`)}>Save</${ActionButton}>` },
];

/** @type {import("../../ui/table.js").Column[]} */
const answerColumns = [
  { name: "type", head: "Kind" }, { name: "control_number", head: "Number" }, { name: "created_at", head: "Came", cell: (row) => dateTime(row.created_at) },
  { name: "applied", head: "Applied", number: true },
  { name: "unmatched", head: "For a person", cell: (row) => (row.unmatched === 0 ? "–" : html`<${Unmatched} id=${row.id} count=${row.unmatched} />`) },
];

/** What of an answer nobody here could decide, when it is asked for. @param {{id: string, count: number}} props */
function Unmatched({ id, count }) {
  const [parts, show] = useState(/** @type {any[] | null} */ (null));
  return parts === null
    ? html`<${ActionButton} kind="quiet" act=${() => get(`billing/claim-responses/${id}/`)} done=${(answer) => show(answer.unmatched)}>${number(count)}</${ActionButton}>`
    : html`<ul>${parts.map((part, i) => html`<li key=${i}>${part.segment} ${part.control_number}: ${words(part.reason)}, ${money(part.amount)}</li>`)}</ul>`;
}

/** Takes in files that came back, as many as are chosen. @param {{done: () => void}} props */
function TakeIn({ done }) {
  const [busy, work] = useState(false);
  const take = async (/** @type {any} */ event) => {
    work(true);
    for (const file of event.target.files) {
      try {
        const answer = await call("POST", "billing/claim-responses/", { body: await file.text(), headers: { "Content-Type": "application/edi-x12" } });
        toast(answer.repeated ? `${file.name} was applied before.` : `${file.name}: ${answer.applied} lines, ${answer.unmatched} for a person.`);
      } catch (error) {
        toast(`${file.name}: ${error instanceof Error ? error.message : error}`, "problem");
      }
    }
    event.target.value = "";
    work(false);
    done();
  };
  return html`<label class="file">Take in answers <input type="file" multiple disabled=${busy} onChange=${take} /></label>`;
}
