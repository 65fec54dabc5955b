// Queueing again what was given up: as much of it as the filters show, with its number first.
import { post } from "../../api.js";
import { Dialog, Form } from "../../ui/form.js";
import { number } from "../../ui/format.js";
import { useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** The errors of deliveries, as the list is filtered by them. @type {[string, string][]} */
export const errors = [
  ["", "Any error"], ["patient_not_found", "Patient not known to the EMR"], ["patient_merged", "Patient merged in the EMR"],
  ["auth_error", "Sign-in or scope refused"],
  ["invalid_resource", "Not accepted as sent"], ["update_refused", "Correction refused"], ["search_outdated", "Not certain yet"],
  ["rate_limited", "Too many requests"], ["emr_unavailable", "EMR away"],
  ["timeout", "No answer in time"], ["not_configured", "No EMR configured"], ["entered_in_error", "Entered in error before it was sent"],
];

const path = "fhir/transmissions/retry/";
const ever = "2000-01-01";

/** @param {{of: {error_code: string, date_from: string, date_to: string}, turn: number, changed: () => void}} props */
export function Requeue({ of, turn, changed }) {
  const [asking, ask] = useState(false);
  const what = { since: of.date_from || ever, date_to: of.date_to || null, error_code: of.error_code || null };
  const found = useLoad(() => post(path, { ...what, dry_run: true }), [JSON.stringify(what), turn]);
  const many = found.data?.requeued ?? 0;
  if (many === 0 || found.problem) {
    return null;
  }
  const them = many === 1 ? "one delivery" : `${number(many)} deliveries`;
  const done = (/** @type {{requeued: number}} */ answer) => {
    ask(false);
    toast(`${number(answer.requeued)} queued again.`);
    changed();
  };
  return html`<button onClick=${() => ask(true)} disabled=${found.loading}>Queue ${them} again</button>
    ${asking && html`<${Dialog} title=${`Queue ${them} again`} close=${() => ask(false)}>
      <p>What was given up${of.error_code ? ` (${errors.find(([code]) => code === of.error_code)?.[1]})`
        : ""} is sent again, each once, at the pace that the EMR is used to, with all retries before it.</p>
      <p class="notice warning">Make sure first that what went wrong is mended: what the EMR refuses again is given up again.</p>
      <${Form} submit=${`Queue ${number(many)} again`} cancel=${() => ask(false)} send=${() => post(path, what)} done=${done}>${() =>
        null}</${Form}>
    </${Dialog}>`}`;
}
