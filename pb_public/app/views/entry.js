// One billing entry: summary, reasons, evidence, history, and the actions on its claim.
import { download, get } from "../api.js";
import { can } from "../permissions.js";
import { go, place, updateAbout } from "../router.js";
import { toast } from "../ui/toast.js";
import { Badge } from "../ui/badge.js";
import { ActionButton } from "../ui/form.js";
import { calendarDate, dateTime, fullTime, minutes, money, humanize } from "../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../ui/states.js";
import { Facts } from "../ui/table.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Explained } from "./billing/code_explanation.js";
import { dueText, nextSteps, stateName, warningText } from "./billing/labels.js";
import { Evidence } from "./entry/evidence.js";
import { Steps } from "./entry/steps.js";

/** @typedef {import("./entry/steps.js").Entry} Entry */

/** @param {{id?: string}} props */
export function Entry({ id }) {
  if (!id) {
    return html`<${EmptyState} title="No entry selected" page>Select one under Billing.</${EmptyState}>`;
  }
  return html`<${Sheet} key=${id} id=${id} />`;
}

/** @param {{id: string}} props */
function Sheet({ id }) {
  const entry = useLoad((signal) => get(`billing/entries/${id}/`, {}, signal), [id]);
  const { then = [], back = {} } = place.value.about;
  const next = () => updateAbout({ id: then[0], then: then.slice(1) });
  const leave = () => (back.query ? history.back() : go("billing", {}, { tab: "entries" }));
  return html`<${Loaded} from=${entry}>${(/** @type {Entry} */ data) => html`
    <div class="heading">
      <h1>${data.claim_id} <small class="soft">${data.cpt_code}</small></h1>
      <${Badge} of=${data.lifecycle_status} text=${stateName(data.lifecycle_status)} />
      ${then.length > 0 && html`<button onClick=${next}>Next <span class="soft">${then.length} more</span></button>`}
      <button class="quiet" onClick=${leave}>All entries</button>
    </div>
    ${data.warnings.length > 0 && html`<div class="notice warning before" role="status"><strong>${data.lifecycle_status === "pending_review"
      ? "Check before review:" : "Warnings at review:"}</strong>
      <ul>${data.warnings.map((code) => html`<li key=${code}>${warningText(code)}</li>`)}</ul></div>`}
    ${data.rejection !== null && html`<${Rejection} of=${data.rejection} />`}
    ${data.secondary?.rejection && html`<${Rejection} of=${data.secondary.rejection} claim="Secondary claim returned" />`}
    <section class="card"><${Summary} entry=${data} />
      ${can("manageBilling") && html`<${Steps} entry=${data} changed=${(now) => entry.change(() => now)}
        openNext=${then.length > 0 && (() => { toast(`${data.claim_id} reviewed.`); next(); })} />`}
    </section>
    <section class="card" aria-labelledby="about-entry">
      <h2 class="unseen" id="about-entry">About the entry</h2>
      <${Tabs} label="About the entry" tabs=${[
        { key: "why", name: "Why", show: () => html`<${Explained} patient=${data.patient_id} month=${data.service_date.slice(0, 7)}
          entry=${data.id} />` },
        { key: "evidence", name: "Evidence", show: () => html`<div class="bar-of-acts"><p>Everything that an auditor requires.</p>
          <${ActionButton} act=${() => download(`billing/entries/${id}/evidence/`, { format: "pdf" }, `${data.claim_id}-evidence.pdf`)}>
            Download as PDF</${ActionButton}></div><${Evidence} entry=${id} />` },
        { key: "history", name: "History", show: () => html`<${History} moves=${data.history} />` },
      ]} />
    </section>`}
  </${Loaded}>`;
}

/** @param {{entry: Entry}} props */
function Summary({ entry }) {
  const patient = html`<button class="link" onClick=${() => go("patient", { id: entry.patient_id })}>${entry.patient_name}</button>`;
  const facts = /** @type {([any, any] | false)[]} */ ([
    ["Patient", patient],
    ["Service date", calendarDate(entry.service_date)],
    ["Period", `${calendarDate(entry.billing_period_start)} – ${calendarDate(entry.billing_period_end)}`],
    entry.transmission_days !== null && ["Days with readings", entry.transmission_days],
    entry.duration_minutes > 0 && ["Time", minutes(entry.duration_minutes)],
    entry.units > 1 && ["Units", entry.units],
    can("readRevenue") && ["Charge", money(entry.charge)],
    can("readRevenue") && ["Expected", money(entry.expected)],
    can("readRevenue") && entry.submitted_at !== null && ["Open", money(entry.open)],
    can("readRevenue") && entry.adjusted !== 0 && ["Adjusted", money(entry.adjusted)],
    can("readRevenue") && entry.patient_responsibility !== 0 && ["Patient responsibility", money(entry.patient_responsibility)],
    can("readRevenue") && entry.lifecycle_status === "refund_due" && ["Refund due", `by ${calendarDate(entry.repay_by)}`],
    can("readRevenue") && entry.refund !== null
      && ["Refunded", `${money(entry.refund.amount)}, last on ${calendarDate(entry.refund.date)}, ${entry.refund.reference}`],
    can("readRevenue") && ["Payer", entry.payer],
    can("readRevenue") && entry.secondary !== null && ["Secondary claim", humanize(entry.secondary.status)],
    ["Diagnoses", entry.icd10_codes.join(", ") || "None"],
    ["Rendering provider", entry.rendering_provider || "–"],
    ["Source", humanize(entry.source)],
    ["Created by", `${entry.created_by}, ${dateTime(entry.created_at)}`],
    entry.reviewed_by !== null && ["Reviewed by", `${entry.reviewed_by}, ${dateTime(entry.reviewed_at)}${entry.attested ? ", attested"
      : ""}`],
    entry.submission_reference !== null && ["Submitted", `${entry.submission_reference}, ${dateTime(entry.submitted_at)}`],
    entry.original_reference !== null && entry.original_reference !== entry.submission_reference && ["Replaces", entry.original_reference],
    entry.resubmission_count > 0 && ["Resubmitted", `${entry.resubmission_count} times`],
    can("readRevenue") && entry.payment !== null
      && ["Paid", `${money(entry.payment.amount)} on ${calendarDate(entry.payment.date)}, ${entry.payment.reference}`],
    entry.denial !== null && ["Denied", `${entry.denial.code}: ${entry.denial.description}, ${calendarDate(entry.denial.date)}`],
    entry.denial !== null && entry.lifecycle_status === "denied"
      && ["Next step", [nextSteps[entry.denial.next_step], dueText(entry.denial)].filter(Boolean).join(". ")],
    entry.claim_control_number !== null && ["Claim number sent", entry.claim_control_number],
    entry.payer_control_number !== null && ["Payer’s claim number", entry.payer_control_number],
    entry.appeal !== null && ["Appealed", [calendarDate(entry.appeal.date), entry.appeal.reference].filter(Boolean).join(", ")],
    entry.notes !== "" && ["Notes", entry.notes],
  ]);
  return html`<${Facts} of=${facts.filter(Boolean)} />`;
}

/** @param {{of: NonNullable<Entry["rejection"]>, claim?: string}} props */
const Rejection = ({ of, claim = "Returned" }) => html`<div class="notice warning before" role="status">
  <strong>${claim} by a ${of.source} on ${dateTime(of.at)}: ${of.codes.join(", ")}</strong>
  <ul>${of.details.map((d, index) => html`<li key=${index}>${d.text} <span class="soft">${[
    d.value !== null && `Sent: ${d.value}`, d.message, d.procedure !== null && `Line ${d.procedure}`, d.loop !== null && `Loop ${d.loop}`,
    d.position !== null && `Segment ${d.position} of the file`, d.claim !== null && `Claim ${d.claim}`,
  ].filter(Boolean).join(" · ")}</span></li>`)}</ul></div>`;

/** @param {{moves: Entry["history"]}} props */
const History = ({ moves }) => (moves.length === 0 ? html`<${EmptyState} title="No history yet" />`
  : html`<ol class="steps">${moves.map((move) => html`
  <li key=${move.timestamp + move.action}><strong>${humanize(move.action)}</strong>${move.to && move.from !== move.to
    && html`: ${move.from ? `${stateName(move.from)} → ` : ""}${stateName(move.to)}`}
    ${move.detail && html`<div>${move.detail}</div>`}
    <time datetime=${move.timestamp}>${fullTime(move.timestamp)} by ${move.actor}</time></li>`)}</ol>`);
