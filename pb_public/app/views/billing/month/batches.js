// The latest claim files and responses, and the next batch.
import { get, post } from "../../../api.js";
import { can } from "../../../permissions.js";
import { go } from "../../../router.js";
import { Badge } from "../../../ui/badge.js";
import { ActionButton } from "../../../ui/form.js";
import { countOf, day, money, number, humanize } from "../../../ui/format.js";
import { Loaded, useLoad } from "../../../ui/states.js";
import { toast } from "../../../ui/toast.js";
import { classes, html, useId, useState } from "../../../view.js";
import { saveFile, UploadResponses } from "../claim_files.js";
import { amountOf, sumOf } from "../blocking_reasons.js";
import { SubmitMany } from "../submit_many.js";
import { resultsText } from "../labels.js";

/** @typedef {import("../blocking_reasons.js").Row} Row */

const shown = 3;
// Claim lines in one file, at most.
const batchLimit = 1000;
/** @type {Record<string, [string, string, string]>} tone, sign and text by state */
const states = {
  created: ["", "○", "no response yet"], accepted: ["good", "✓", "accepted"], partly_accepted: ["warning", "◆", "partly accepted"],
  rejected: ["critical", "▲", "rejected"],
};

/** @param {{turn: number, changed: () => void}} props */
export function Batches({ turn, changed }) {
  const sent = useLoad((signal) => get("billing/claim-batches/", { page_size: shown }, signal), [turn]);
  const back = useLoad((signal) => get("billing/claim-responses/", { page_size: shown }, signal), [turn]);
  return html`<section class="panel pad" aria-labelledby="batches">
    <header class="heading"><h2 id="batches">Batches and responses</h2>
      ${can("manageBilling") && html`<${UploadResponses} done=${changed} />`}</header>
    <${Loaded} from=${sent} empty=${(data) => data.count === 0} nothing=${html`<p class="soft">No claim files yet.</p>`}>
      ${(data) => html`<ul class="batches">${data.results.map((/** @type {any} */ one) => html`<${Sent} key=${one.id} of=${one} />`)}</ul>`}
    </${Loaded}>
    ${back.data && back.data.count > 0 && html`<ul class="batches">
      ${back.data.results.map((/** @type {any} */ one) => html`<${Back} key=${one.id} of=${one} />`)}</ul>`}
  </section>`;
}

/** @param {{of: any}} props a file */
function Sent({ of }) {
  const [tone, sign, label] = states[of.status] ?? ["", "○", humanize(of.status)];
  return html`<li><button type="button" class="link" onClick=${() => go("billing", {}, { tab: "batches" })}>${of.interchange_control_number}
    </button>
    <span>${day(of.created_at)}</span><span>${countOf(of.claims, "claim")}</span><span class="number">${money(of.total_charge)}</span>
    <span><span class=${classes("mark", tone)} aria-hidden="true">${sign}</span> ${[label,
        resultsText(of.answers)].filter(Boolean).join(": ")}
      ${of.usage === "T" && html` <${Badge} of="warning" text="Test" />`}</span>
    ${can("manageBilling") && html`<${ActionButton} kind="quiet" act=${() => saveFile(of)}
      aria-label=${`Save file ${of.interchange_control_number}`}>Save</${ActionButton}>`}</li>`;
}

/** @param {{of: any}} props a response */
const Back = ({ of }) => html`<li>
  <button type="button" class="link" onClick=${() => go("billing", {}, { tab: "responses" })}>${of.type} ${of.control_number}</button>
  <span>${day(of.created_at)}</span><span>${number(of.applied)} posted</span><span></span>
  <span>${of.unmatched > 0 ? html`<span class="mark warning" aria-hidden="true">◆</span> ${number(of.unmatched)} need review`
    : html`<span class="mark good" aria-hidden="true">✓</span> all posted`}</span></li>`;

/** Sends reviewed entries: as a claim file if Vigil sends claims, otherwise by recording that they were submitted elsewhere.
 *  @param {{sends: boolean, rows: Row[], changed: () => void}} props */
export function Send({ sends, rows, changed }) {
  const [isSubmitting, setSubmitting] = useState(false);
  const why = useId();
  const fit = rows.filter((row) => (sends ? row.in_batch : row.ready));
  const ids = fit.slice(0, batchLimit).map((row) => row.entry_id);
  if (!can("manageBilling") || rows.length === 0) {
    return null;
  }
  if (ids.length === 0) {
    return html`<button type="button" disabled aria-describedby=${why}>${sends ? "Create batch" : "Submit"}</button>
      <small id=${why}>${sends ? `Nothing to send: none of ${number(rows.length)} passes preflight.`
        : `Nothing to submit: all ${number(rows.length)} are blocked.`}</small>`;
  }
  const made = (/** @type {any} */ batch) => {
    toast(`File ${batch.interchange_control_number} created. It is first under “Batches and responses”.`, "done",
      { offer: { name: "Download the file", act: () => saveFile(batch) } });
    changed();
  };
  return sends
    ? html`<${ActionButton} kind="main" act=${() => post("billing/claim-batches/", { entry_ids: ids })}
      done=${made}>Create batch of ${number(ids.length)}</${ActionButton}>`
    : html`<button type="button" class="main" onClick=${() => setSubmitting(true)}>Submit ${number(ids.length)}</button>
      ${isSubmitting && html`<${SubmitMany} find=${() => Promise.resolve(ids)} close=${() => setSubmitting(false)} done=${changed} />`}`;
}

/** @param {{sheet: {sends_claims: boolean, usage: string, results: Row[]}, changed: () => void, errors: () => void}} props */
export function NextBatch({ sheet, changed, errors }) {
  const rows = sheet.results.filter((row) => row.lifecycle_status === "reviewed");
  const fit = rows.filter((row) => (sheet.sends_claims ? row.in_batch : row.ready));
  return html`<section class="panel pad" aria-labelledby="next-batch">
    <header class="heading"><h2 id="next-batch">${sheet.sends_claims ? "Next batch" : "To submit"}</h2>
      ${sheet.sends_claims && sheet.usage !== "P" && html`<${Badge} of="warning" text="Test mode" />`}</header>
    <div class="next-batch"><p><strong>${number(rows.length)} reviewed, ${money(sumOf(rows, amountOf))}</strong>
      <small>${sheet.sends_claims ? `${number(fit.length)} pass preflight, ${number(rows.length - fit.length)} do not`
        : `${number(fit.length)} can be submitted`}</small></p>
    <div class="actions">${rows.length > fit.length && html`<button type="button"
      onClick=${errors}>See ${number(rows.length - fit.length)} blocked</button>`}
      <${Send} sends=${sheet.sends_claims} rows=${rows} changed=${changed} /></div></div>
  </section>`;
}
