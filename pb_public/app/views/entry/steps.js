// The actions on a claim in each state, and their forms.
import { post } from "../../api.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { toast } from "../../ui/toast.js";
import { daysAgo } from "../../ui/time.js";
import { html, useState } from "../../view.js";
import { codesOf } from "../billing/labels.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["BillingEntryWithHistory"]} Entry */
/** @typedef {Record<string, string[]>} Errors */
/** @typedef {{name: string, title: string, doneText: string, danger?: boolean, about?: string, fields: (entry: Entry, errors: Errors,
 * against: string[]) => any, path?: string, body?: (values: Record<string, any>) => any}} Step */

const today = () => daysAgo(0);

/** @param {Errors} errors @param {string} label */
const reason = (errors, label = "Reason") => html`<${Field} label=${label} name="reason" kind="textarea" maxlength="500"
  errors=${errors} />`;
/** @param {Errors} errors */
const reference = (errors) => html`<${Field} label="Submission reference" name="submission_reference" maxlength="100"
  hint="Leave blank to create one automatically" errors=${errors} />`;

const payers = [["primary", "The payer"], ["secondary", "A secondary payer"], ["patient", "The patient"]];
const groups = [["OA", "OA: other, such as a write-off"], ["CO", "CO: contractual obligation"], ["PR", "PR: patient responsibility"],
  ["PI", "PI: payer-initiated reduction"]];

/** Warnings that block a review until a reason is given. */
const overrideReasons = [["possible_duplicate", "Why this is not a duplicate"],
  ["competing_service", "Why this is billed in addition to another practice"]];

/** The amount to refund: the whole payment of a voided claim, otherwise the overpayment. @param {Entry} entry */
const refundAmount = (entry) => (entry.lifecycle_status === "refund_due"
  ? (Math.round(entry.paid_total * 100) - Math.round((entry.refund?.amount ?? 0) * 100)) / 100 : credit(entry));

/** The amount paid in excess of the charge. @param {Entry} entry */
const credit = (entry) => (["paid", "denied"].includes(entry.lifecycle_status) ? Math.max(0, Math.min(-entry.open, entry.paid_total)) : 0);

/** @type {Record<string, Step>} */
const steps = {
  review: {
    name: "Review", title: "Review entry", doneText: "Reviewed.", about: "After your review the entry can be submitted to the payer.",
    fields: (_, errors, against) => html`
      ${against.includes("attest_interaction")
        && html`<${Field} label="I logged these minutes and attest that they were live contact with the patient or caregiver"
          name="attested"
        kind="checkbox" errors=${errors} />`}
      ${overrideReasons.some(([code]) => against.includes(code))
        && html`<${Field} label=${overrideReasons.filter(([code]) => against.includes(code)).map(([, why]) => why).join("; ")}
        name="override_reason" maxlength="500" errors=${errors} />`}
      <${Field} label="Notes" name="notes" kind="textarea" maxlength="4000" errors=${errors} />`,
  },
  submit: { name: "Submit", title: "Submit claim", doneText: "Submitted.", fields: (_, errors) => reference(errors) },
  return: { name: "Return", title: "Return to review", doneText: "Returned.", fields: (_, errors) => reason(errors) },
  pay: {
    name: "Record payment", title: "Record payment", doneText: "Payment recorded.",
    fields: (entry, errors) => html`<div class="fields">
      <${Field} label="Amount in dollars" name="amount" kind="number" min="0" step="0.01" value=${entry.lifecycle_status === "paid"
        ? Math.max(entry.open, 0) : entry.expected} errors=${errors} />
      <${Field} label="Payment date" name="payment_date" kind="date" value=${today()} errors=${errors} /></div>
      <${Field} label="Check or transfer number" name="reference" maxlength="100" errors=${errors} />
      <${Field} label="Paid by" name="payer" kind="select" value=${entry.lifecycle_status === "denied" ? "secondary" : "primary"}
        options=${payers.filter(([value]) => value !== "primary" || entry.lifecycle_status !== "denied")} errors=${errors} />
      ${errors.overpayment_reason && html`<${Field} label="Reason for overpayment" name="overpayment_reason" maxlength="500"
        errors=${errors} />`}`,
  },
  deny: {
    name: "Record denial", title: "Record denial", doneText: "Denied.", danger: true,
    fields: (_, errors) => html`
      <${Field} label="Reason code" name="code" maxlength="20" hint="CARC, for example CO-16" errors=${errors} />
      <${Field} label="Payer’s description" name="description" kind="textarea" maxlength="500" errors=${errors} />
      <${Field} label="Denial date" name="denial_date" kind="date" value=${today()} errors=${errors} />`,
  },
  resubmit: {
    name: "Resubmit", title: "Correct and resubmit", doneText: "Resubmitted.",
    about: "For errors in the data. If the payer disputes coverage, appeal instead.",
    fields: (entry, errors) => html`
      <${Field} label="Diagnoses (ICD-10)" name="icd10_codes" value=${entry.icd10_codes.join(", ")} hint="Separated by commas"
        errors=${{ icd10_codes: errors["corrections.icd10_codes"] }} />
      <div class="fields">
        <${Field} label="Service date" name="service_date" kind="date" value=${entry.service_date}
          errors=${{ service_date: errors["corrections.service_date"] }} />
        <${Field} label="Minutes" name="duration_minutes" kind="number" min="0" max="1440" value=${entry.duration_minutes}
          errors=${{ duration_minutes: errors["corrections.duration_minutes"] }} /></div>
      <${Field} label="Notes" name="notes" kind="textarea" value=${entry.notes} errors=${{ notes: errors["corrections.notes"] }} />
      ${reference(errors)}`,
    body: ({ submission_reference, icd10_codes, ...rest }) =>
      ({ submission_reference, corrections: { ...rest, icd10_codes: codesOf(icd10_codes) } }),
  },
  appeal: {
    name: "Appeal", title: "Appeal denial", doneText: "Appealed.",
    fields: (_, errors) => html`${reason(errors)}
      <div class="fields"><${Field} label="Reference" name="reference" maxlength="100" errors=${errors} />
      <${Field} label="Appeal date" name="appeal_date" kind="date" value=${today()} errors=${errors} /></div>`,
  },
  adjust: {
    name: "Adjust", title: "Adjust open amount", doneText: "Adjusted.",
    about: "A write-off, a contractual adjustment, or patient responsibility.",
    fields: (entry, errors) => html`<div class="fields">
      <${Field} label="Amount in dollars" name="amount" kind="number" step="0.01" value=${Math.max(entry.open, 0)} errors=${errors} />
      <${Field} label="Group" name="group" kind="select" value="OA" options=${groups} errors=${errors} />
      <${Field} label="Reason code" name="carc" maxlength="5" hint="CARC, for example 45" errors=${errors} /></div>${reason(errors)}`,
  },
  "request-void": {
    name: "Request void", title: "Request void", doneText: "Void requested.", danger: true,
    about: "The payer voids a claim that was sent. Payments must be refunded within sixty days.",
    fields: (_, errors) => reason(errors),
  },
  refund: {
    name: "Record refund", title: "Record refund", doneText: "Refund recorded.",
    fields: (entry, errors) => html`<div class="fields">
      <${Field} label="Amount in dollars" name="amount" kind="number" min="0" step="0.01" value=${refundAmount(entry)} errors=${errors} />
      <${Field} label="Refund date" name="date" kind="date" value=${today()} errors=${errors} /></div>
      <${Field} label="Check or transfer number" name="reference" maxlength="100" errors=${errors} />`,
  },
  "bill-secondary": {
    name: "Bill secondary", title: "Bill the secondary payer", doneText: "Sent to the secondary payer.",
    about: "Makes a claim file with the whole claim and the primary payer's decision.", fields: () => "",
  },
  resend: {
    name: "Bill secondary again", title: "Bill the secondary payer again", doneText: "Sent to the secondary payer.", path: "bill-secondary",
    about: "For a claim that the secondary payer does not have. It rejects a second copy as a duplicate.", fields: () => "",
    body: () => ({ resend: true }),
  },
  void: { name: "Void", title: "Void entry", doneText: "Voided.", danger: true,
    about: "A voided entry is never billed. It remains on record.", fields: (_, errors) => reason(errors) },
};

/** Source: docs/decisions/billing.md, "Claim state machine". @type {Record<string, string[]>} */
const actionsByState = {
  pending_review: ["void", "review"], reviewed: ["void", "return", "submit"], submitted: ["request-void", "deny", "pay"],
  appealed: ["deny", "pay"],
  denied: ["adjust", "pay", "appeal", "resubmit"], paid: ["request-void", "adjust", "pay"], void_requested: ["pay", "void"],
  refund_due: ["refund"],
};

/** @param {{entry: Entry, changed: (entry: Entry) => void, openNext?: false | (() => void)}} props openNext opens the next entry to
 *  review */
export function Steps({ entry, changed, openNext }) {
  const [open, setOpen] = useState("");
  const names = [...actionsByState[entry.lifecycle_status] ?? [], ...(credit(entry) > 0 ? ["refund"] : []),
    ...(["due", "denied"].includes(entry.secondary?.status ?? "") ? ["bill-secondary"] : []),
    ...(entry.secondary?.status === "submitted" && ["paid", "denied"].includes(entry.lifecycle_status) ? ["resend"] : [])];
  const reviewAndNext = openNext && names.includes("review") ? openNext : null;
  const main = reviewAndNext ? -1 : names.length - 1;
  return html`<div class="actions">${names.map((name, at) => html`
      <button key=${name} class=${at === main ? "main" : ""} onClick=${() => setOpen(name)}>${steps[name].name}</button>`)}
      ${reviewAndNext && html`<${ActionButton} kind="main" act=${() => post(`billing/entries/${entry.id}/review/`)}
        done=${reviewAndNext}>Review and next
        </${ActionButton}>`}</div>
    ${open && html`<${StepDialog} step=${steps[open]} path=${open} entry=${entry} close=${() => setOpen("")} changed=${changed} />`}`;
}

/** @param {{step: Step, path: string, entry: Entry, close: () => void, changed: (entry: Entry) => void}} props */
function StepDialog({ step, path, entry, close, changed }) {
  const [warnings, setWarnings] = useState(entry.warnings); // the form also shows fields for the server's warnings
  const send = (/** @type {Record<string, any>} */ values) => post(`billing/entries/${entry.id}/${step.path ?? path}/`,
    step.body ? step.body(values) : values).catch((error) => {
    setWarnings([...entry.warnings, ...(error.warnings ?? [])]);
    throw error;
  });
  return html`<${Dialog} title=${step.title} close=${close}>
    ${step.about && html`<p>${step.about}</p>`}
    <${Form} submit=${step.name} danger=${step.danger} cancel=${close} send=${send}
      done=${(answer) => { toast(step.doneText); close(); changed(answer); }}>
      ${(errors) => step.fields(entry, errors, warnings)}</${Form}>
  </${Dialog}>`;
}
