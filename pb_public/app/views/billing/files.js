// Claims on their way: the files that left, and the answers that came back.
import { call, download, get } from "../../api.js";
import { can } from "../../can.js";
import { ActionButton } from "../../ui/form.js";
import { dateTime, money, number, words } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { answersIn } from "./words.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** Hands a file of claims to the browser to keep. @param {any} batch */
export const saveFile = ({ id, interchange_control_number: no }) => download(`billing/claim-batches/${id}/file/`, {}, `${no}.837`);

/** The files that left. @param {{turn: number}} props */
export const BatchFiles = ({ turn }) => html`<section class="card"><h2>Files that left</h2>
  <${List} path="billing/claim-batches/" turn=${turn} caption="Files of claims" nothing="No file has left" columns=${fileColumns}
    name="batches" /></section>`;

/** The answers that came back. @param {{turn: number, changed: () => void}} props */
export const Responses = ({ turn, changed }) => html`<section class="card"><div class="bar-of-acts"><h2>Answers</h2>${can("manageBilling")
  && html`<${TakeIn} done=${changed} />`}</div>
  <${List} path="billing/claim-responses/" turn=${turn} caption="Answers of the clearinghouse" nothing="No answer has come"
    columns=${answerColumns} name="responses" /></section>`;

/** @type {import("../../ui/table.js").Column[]} */
const fileColumns = [
  { name: "interchange_control_number", head: "Number" }, { name: "created_at", head: "Made", cell: (row) => dateTime(row.created_at) },
  { name: "claims", head: "Claims", number: true }, { name: "lines", head: "Lines", number: true },
  { name: "total_charge", head: "Charge", number: true, cell: (row) => money(row.total_charge) },
  { name: "status", head: "State", cell: (row) => `${words(row.status)}${row.usage === "T" ? ", test" : ""}` },
  { name: "answers", head: "Lines by answer", cell: (row) => answersIn(row.answers) },
  { name: "id", head: "File", cell: (row) => can("manageBilling")
    && html`<${ActionButton} kind="quiet" act=${() => saveFile(row)}>Save</${ActionButton}>` },
];

/** @type {import("../../ui/table.js").Column[]} */
const answerColumns = [
  { name: "type", head: "Kind" }, { name: "control_number", head: "Number" }, { name: "created_at", head: "Came", cell: (row) =>
    dateTime(row.created_at) },
  { name: "applied", head: "Applied", number: true },
  { name: "unmatched", head: "For a person", cell: (row) =>
    (row.unmatched === 0 ? "–" : html`<${Unmatched} id=${row.id} count=${row.unmatched} />`) },
];

/** What of an answer nobody here could decide, when it is asked for. @param {{id: string, count: number}} props */
function Unmatched({ id, count }) {
  const [parts, show] = useState(/** @type {any[] | null} */ (null));
  return parts === null
    ? html`<${ActionButton} kind="quiet" act=${() => get(`billing/claim-responses/${id}/`)} done=${(answer) => show(answer.unmatched)}>
      ${number(count)}</${ActionButton}>`
    : html`<ul>${parts.map((part, i) =>
      html`<li key=${i}>${part.segment} ${part.control_number}: ${words(part.reason)}, ${money(part.amount)}</li>`)}</ul>`;
}

/** Takes in files that came back, as many as are chosen. @param {{done: () => void}} props */
export function TakeIn({ done }) {
  const [busy, work] = useState(false);
  const take = async (/** @type {any} */ event) => {
    work(true);
    for (const file of event.target.files) {
      try {
        const answer = await call("POST", "billing/claim-responses/", { body: await file.text(),
          headers: { "Content-Type": "application/edi-x12" } });
        toast(answer.repeated ? `${file.name} was applied before.`
          : `${file.name}: ${answer.applied} lines, ${answer.unmatched} for a person.`);
      } catch (error) {
        toast(`${file.name}: ${error instanceof Error ? error.message : error}`, "problem");
      }
    }
    event.target.value = "";
    work(false);
    done();
  };
  return html`<label class="file">Read a response file <input type="file" multiple disabled=${busy} onChange=${take} /></label>`;
}
