// Requeues the failed deliveries that match the filters, after showing their number.
import { post } from "../../api.js";
import { Dialog, Form } from "../../ui/form.js";
import { number } from "../../ui/format.js";
import { useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** Delivery errors, for the filter. @type {[string, string][]} */
export const errors = [
  ["", "Any error"], ["patient_not_found", "Patient not in the EMR"], ["patient_merged", "Patient merged in the EMR"],
  ["auth_error", "Sign-in or scope rejected"],
  ["invalid_resource", "Rejected by the EMR"], ["update_refused", "Correction rejected"], ["search_outdated", "Not confirmed yet"],
  ["outcome_unknown", "Taken by the EMR, not found there"],
  ["too_large", "Too large for the EMR"], ["rate_limited", "Too many requests"], ["emr_unavailable", "EMR unavailable"],
  ["timeout", "Timed out"], ["not_configured", "No EMR configured"], ["entered_in_error", "Entered in error before it was sent"],
];

const path = "fhir/transmissions/retry/";
const ever = "2000-01-01";

/** @param {{filters: {error_code: string, date_from: string, date_to: string}, turn: number, changed: () => void}} props */
export function Requeue({ filters, turn, changed }) {
  const [dialog, setDialog] = useState(false);
  const what = { since: filters.date_from || ever, date_to: filters.date_to || null, error_code: filters.error_code || null };
  const found = useLoad(() => post(path, { ...what, dry_run: true }), [JSON.stringify(what), turn]);
  const many = found.data?.requeued ?? 0;
  if (many === 0 || found.problem) {
    return null;
  }
  const them = many === 1 ? "1 delivery" : `${number(many)} deliveries`;
  const done = (/** @type {{requeued: number}} */ answer) => {
    setDialog(false);
    toast(`${number(answer.requeued)} requeued.`);
    changed();
  };
  return html`<button onClick=${() => setDialog(true)} disabled=${found.loading}>Requeue ${them}</button>
    ${dialog && html`<${Dialog} title=${`Requeue ${them}`} close=${() => setDialog(false)}>
      <p>Failed deliveries${filters.error_code ? ` (${errors.find(([code]) => code === filters.error_code)?.[1]})`
        : ""} are sent again, each once, at the usual rate, after all scheduled retries.</p>
      <p class="notice warning">Fix the cause first: deliveries that the EMR rejects again fail again.</p>
      <${Form} submit=${`Requeue ${number(many)}`} cancel=${() => setDialog(false)} send=${() => post(path, what)} done=${done}>${() =>
        null}</${Form}>
    </${Dialog}>`}`;
}
