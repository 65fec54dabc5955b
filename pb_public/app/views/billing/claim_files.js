// Claim files and payer responses.
import { call, download, get } from "../../api.js";
import { can } from "../../permissions.js";
import { ActionButton, Dialog } from "../../ui/form.js";
import { dateTime, money, number, humanize } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { resultsText } from "./labels.js";
import { RemittanceSums } from "./remittances.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** Downloads a claim file. @param {any} batch */
export const saveFile = ({ id, interchange_control_number: no }) => download(`billing/claim-batches/${id}/file/`, {}, `${no}.837`);

/** The list of claim files. @param {{turn: number}} props */
export const BatchFiles = ({ turn }) => html`<section class="card"><h2>Claim files</h2>
  <${List} path="billing/claim-batches/" turn=${turn} caption="Claim files" nothing="No claim files yet" columns=${fileColumns}
    name="batches" /></section>`;

/** The list of responses. @param {{turn: number, changed: () => void}} props */
export const Responses = ({ turn, changed }) => html`<section class="card"><div
  class="bar-of-acts"><h2>Payer responses</h2>${can("manageBilling")
  && html`<${UploadResponses} done=${changed} />`}</div>
  <${List} path="billing/claim-responses/" turn=${turn} caption="Payer responses" nothing="No responses yet"
    columns=${answerColumns} name="responses" /></section>`;

/** @type {import("../../ui/table.js").Column[]} */
const fileColumns = [
  { name: "interchange_control_number", head: "Number" }, { name: "created_at", head: "Created", cell: (row) => dateTime(row.created_at) },
  { name: "claims", head: "Claims", number: true }, { name: "lines", head: "Lines", number: true },
  { name: "total_charge", head: "Charge", number: true, cell: (row) => money(row.total_charge) },
  { name: "status", head: "State", cell: (row) => `${humanize(row.status)}${row.usage === "T" ? ", test mode" : ""}` },
  { name: "answers", head: "Lines by result", cell: (row) => resultsText(row.answers) },
  { name: "id", head: "File", cell: (row) => can("manageBilling")
    && html`<${ActionButton} kind="quiet" act=${() => saveFile(row)}>Save</${ActionButton}>` },
];

/** @type {import("../../ui/table.js").Column[]} */
const answerColumns = [
  { name: "type", head: "Kind" }, { name: "control_number", head: "Number" }, { name: "created_at", head: "Received", cell: (row) =>
    dateTime(row.created_at) },
  { name: "applied", head: "Posted", number: true },
  { name: "unmatched", head: "Needs review", cell: (row) =>
    (row.unmatched === 0 ? "–" : html`<${Unmatched} id=${row.id} count=${row.unmatched} />`) },
];

/** The unmatched parts of a response, loaded on click. @param {{id: string, count: number}} props */
function Unmatched({ id, count }) {
  const [parts, setParts] = useState(/** @type {any[] | null} */ (null));
  return parts === null
    ? html`<${ActionButton} kind="quiet" act=${() => get(`billing/claim-responses/${id}/`)} done=${(answer) => setParts(answer.unmatched)}>
      ${number(count)}</${ActionButton}>`
    : html`<ul>${parts.map((part, i) =>
      html`<li key=${i}>${part.segment} ${part.control_number}: ${humanize(part.reason)}, ${money(part.amount)}</li>`)}</ul>`;
}

const maxPreview = 1_000_000; // bytes: the server refuses a larger file, because other work waits for a preview

const x12 = (/** @type {string} */ body) => ({ body, headers: { "Content-Type": "application/edi-x12" } });

/** Runs an action for a file, and reports its error. @param {string} name @param {() => Promise<void>} act */
const report = (name, act) => act().catch((error) => toast(`${name}: ${error instanceof Error ? error.message : error}`, "problem"));

/** Uploads response files, one or several. Files with payments are shown first. @param {{done: () => void}} props */
export function UploadResponses({ done }) {
  const [isBusy, setBusy] = useState(false);
  const [shown, setShown] = useState(/** @type {{name: string, text: string, preview: any}[]} */ ([]));
  const post = (/** @type {string} */ name, /** @type {string} */ text) => report(name, async () => {
    const answer = await call("POST", "billing/claim-responses/", x12(text));
    toast(answer.repeated ? `${name} was already posted.` : `${name}: ${answer.applied} lines posted, ${answer.unmatched} need review.`);
  });
  const take = async (/** @type {any} */ event) => {
    setBusy(true);
    const payments = /** @type {typeof shown} */ ([]);
    for (const file of event.target.files) {
      await report(file.name, async () => {
        const text = await file.text();
        const preview = text.length < maxPreview && await call("POST", "billing/claim-responses/preview/", x12(text));
        if (preview && preview.remittances.length > 0 && !preview.repeated) {
          payments.push({ name: file.name, text, preview });
        } else {
          await post(file.name, text);
        }
      });
    }
    event.target.value = "";
    setShown(payments);
    setBusy(false);
    done();
  };
  const confirm = async () => {
    for (const { name, text } of shown) {
      await post(name, text);
    }
    setShown([]);
    done();
  };
  return html`<label class="file">Upload 999, 277CA or 835 <input type="file" multiple disabled=${isBusy} onChange=${take} /></label>
    ${shown.length > 0 && html`<${Dialog} wide title="Before posting" close=${() => setShown([])}>
      ${shown.flatMap(({ preview }) => preview.remittances).map((/** @type {any} */ remittance, /** @type {number} */ i) =>
        html`<${RemittanceSums} key=${i} remittance=${remittance} />`)}
      <div class="form-foot"><button type="button" onClick=${() => setShown([])}>Cancel</button>
        <${ActionButton} kind="main" act=${confirm}>Post</${ActionButton}></div></${Dialog}>`}`;
}
