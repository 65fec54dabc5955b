// A payer with its rules for claims.
import { patch, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";
import { minutesRules } from "./minutes_rule.js";

/** @type {[string, string][]} */
const corrections = [["new_claim", "As a new claim"], ["replacement", "As a replacement of the first claim"]];
/** @type {[string, string][]} */
const supplyDays = [["", "2 days from 2026, before it 16"], ["2", "2 days"], ["16", "16 days: no 99445"]];

/** The request body: modifiers are one code per line, such as "99457 95 GT". @param {Record<string, any>} values */
const bodyOf = (values) => ({
  ...values,
  device_days: values.device_days && Number(values.device_days),
  modifiers: values.modifiers.map((/** @type {string} */ line) => {
    const [cpt_code, ...modifiers] = line.toUpperCase().split(/[\s,:]+/).filter(Boolean);
    return { cpt_code, modifiers };
  }),
});

/** @param {{payer: any, close: () => void, done: () => void}} props */
export function PayerDialog({ payer, close, done }) {
  const send = (/** @type {any} */ values) =>
    (payer ? patch(`billing/payers/${payer.id}/`, bodyOf(values)) : post("billing/payers/", bodyOf(values)));
  const now = payer ?? { is_active: true, receiver_ids: [], modifiers: [] };
  const options = payer ? corrections : [["", "By filing code"], ...corrections];
  return html`<${Dialog} title=${payer ? payer.name : "Add a payer"} close=${close}>
    <${Form} submit=${payer ? "Save" : "Add"} cancel=${close} send=${send}
      done=${() => { toast(payer ? "Saved." : "Added."); close(); done(); }}>${(errors) => {
        const field = (/** @type {string} */ label, /** @type {string} */ name, /** @type {Record<string, any>} */ rest = {}) =>
          html`<${Field} label=${label} name=${name} value=${now[name]} errors=${errors} disabled=${!can("manageBilling")}
            ...${rest} />`;
        return html`${field("Name", "name", { maxlength: 200 })}
    <div class="fields">${field("Payer ID", "payer_id", { maxlength: 50, hint: "As listed by the clearinghouse" })}
      ${field("Electronic payer ID", "edi_payer_id", { maxlength: 80, hint: "In claim files" })}</div>
    <div class="fields">${field("Claim filing code", "claim_filing_code", { maxlength: 2, hint: "MB is Medicare Part B, CI commercial" })}
      ${field("Corrected claims go", "corrected_claims", { kind: "select", options })}</div>
    <div class="fields">${field("Timely filing limit in days", "filing_limit_days", { kind: "number", min: 1 })}
      ${field("Appeal limit in days", "appeal_limit_days", { kind: "number", min: 1 })}</div>
    <div class="fields">${field("Minutes that count", "minutes_rule", { kind: "select", options: minutesRules })}
      ${field("Device supply needs", "device_days", { kind: "select", options: supplyDays, value: `${now.device_days ?? ""}` })}</div>
    ${field("Modifiers", "modifiers", { "kind": "textarea", "data-list": true, "hint": "One code per line, such as 99457 95",
      "value": now.modifiers.map((/** @type {any} */ row) => [row.cpt_code, ...row.modifiers].join(" ")).join("\n") })}
    ${field("Other receiver IDs of this practice", "receiver_ids", { "kind": "textarea", "data-list": true,
      "value": now.receiver_ids.join("\n"), "hint": "One per line, as this payer addresses its files" })}
    ${field("Send the ordering provider on claims", "send_ordering_provider", { kind: "checkbox" })}
    ${field("Active", "is_active", { kind: "checkbox" })}`;
      }}
    </${Form}>
  </${Dialog}>`;
}
