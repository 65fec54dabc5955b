// Threshold templates: the one that matches the patient, and a form to apply one. None is applied automatically.
import { get, post, put } from "../../api.js";
import { can } from "../../permissions.js";
import { ActionButton, Field, Form } from "../../ui/form.js";
import { dateTime, number } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { displayed, unitOf } from "../../ui/units.js";
import { limitsText } from "../../ui/vitals.js";
import { html, useState } from "../../view.js";

/** Provisional bounds in words. @param {{field: string, value: number}[]} bounds field is a path such as "weight.change_threshold_kg" */
const provisionalText = (bounds) => bounds.map(({ field, value }) => {
  const [group, name] = field.split(".");
  return limitsText({ [group]: { [name]: value } });
}).join(", ");

/** Reasons for declining that one click gives. */
const declineReasons = ["Not appropriate for this patient", "The patient’s own limits are set", "Already discussed with the patient"];

/** @param {any} template */
const nameOf = (template) => `${template.name}, version ${template.version}${template.signed_off_by ? "" : " (not signed off)"}`;

/** @param {{id: string, applied: any[], done: () => void}} props */
export function Templates({ id, applied, done }) {
  const all = useLoad((signal) => get("threshold-templates/", { page_size: 100 }, signal), []);
  const patient = useLoad((signal) => get(`patients/${id}/`, {}, signal), [id, applied.length]);
  const p = patient.data;
  const open = all.data?.results.filter((/** @type {any} */ template) => (p?.proposed_templates ?? []).includes(template.id)) ?? [];
  const proposed = open.find((/** @type {any} */ template) => template.id === p?.proposed_template);
  return html`<div class="card">
    <h3>Templates</h3>
    ${p?.needs_thresholds && html`<p class="notice warning" role="status"><strong>Needs thresholds.</strong> The practice’s defaults are for
      adults. Until thresholds are set, only values that are dangerous at every age raise an alert.</p>`}
    ${p?.needs_target_weight && html`<p class="notice warning" role="status"><strong>Needs a dry weight.</strong> ${p.proposed_target_kg
      ? `The median of the last 7 days is ${number(displayed(p.proposed_target_kg, "kg"))} ${unitOf("kg")}.`
      : "There is no weight in the last 7 days to propose one."} ${p.proposed_target_kg && can("changeThresholds")
      && html`<${ActionButton} act=${() => put(`patients/${id}/vital-config/`, { weight: { target_kg: p.proposed_target_kg },
      reason: "Dry weight: the median of the last 7 days." })} doneText="Dry weight set." done=${done}>Accept as
      target</${ActionButton}>`}</p>`}
    ${open.map((/** @type {any} */ template) => html`<${Proposal} key=${template.id} id=${id} template=${template}
      provisional=${(p?.provisional ?? []).filter((/** @type {any} */ bound) => bound.template_id === template.id)} decideBy=${p?.decide_by}
      done=${() => { patient.reload(); done(); }} />`)}
    ${applied.length > 0
      && html`<p class="soft">Applied: ${applied.map((one) => `${one.name}, version ${one.version}, on ${dateTime(one.at)}${one.by
      ? ` by ${one.by}` : ""}`).join("; ")}.</p>`}
    ${can("changeThresholds")
      && html`<${Loaded} from=${all}>${(data) => html`<${Form} submit="Apply template" send=${(values) =>
      post(`patients/${id}/vital-config/apply-template/`, { template_id: Number(values.template_id), reason: values.reason,
        ...values.loosen && { loosen: true } })}
      done=${() => { toast("Template applied."); done(); }}>${(errors) => html`
      <${Field} label="Template" name="template_id" kind="select" value=${String(proposed?.id ?? data.results[0]?.id ?? "")}
        options=${data.results.map((template) => [String(template.id), nameOf(template)])}
        hint="Replaces this patient’s thresholds for the measures in the template." errors=${errors} />
      <${Field} label="Reason, if other than the template" name="reason" maxlength="500" errors=${errors} />
      ${Object.keys(errors).some((name) => name.includes(".")) && html`<${Field} label="Also loosen limits that a person set" name="loosen"
        kind="checkbox" errors=${errors} />`}`}</${Form}>`}</${Loaded}>`}
  </div>`;
}

/** A proposed template with what it has in force already, to apply or decline. @param {{id: string, template: any, provisional: any[],
 *  decideBy: string | null, done: () => void}} props */
function Proposal({ id, template, provisional, decideBy, done }) {
  const [declining, setDeclining] = useState(false);
  const declined = () => { setDeclining(false); done(); };
  const decline = (/** @type {string} */ reason) =>
    post(`patients/${id}/vital-config/decline-template/`, { template_id: template.id, reason });
  const strict = provisional.length > 0;
  return html`<div class=${strict ? "notice warning" : "notice"}>
    <p role="status"><strong>${template.name}</strong> matches the diagnoses and age: ${limitsText(template.thresholds)}.
      Sources: ${template.sources.join("; ")}.</p>
    ${strict && html`<p><strong>Provisional limits in force:</strong> ${provisionalText(provisional)}, because they are
      stricter. Please decide${decideBy ? ` by ${dateTime(decideBy)}` : ""}.</p>`}
    ${can("changeThresholds") && !declining && html`<p>
      <${ActionButton} act=${() => post(`patients/${id}/vital-config/apply-template/`, { template_id: template.id })}
        doneText="Template applied." done=${done}>Apply ${template.name}</${ActionButton}>
      <button type="button" onClick=${() => setDeclining(true)}>Decline</button></p>`}
    ${declining && html`<p role="group" aria-label=${`Reason for declining ${template.name}`}>Decline because:
      ${declineReasons.map((reason) => html` <${ActionButton} key=${reason} act=${() => decline(`${reason}.`)} doneText="Template declined."
        done=${declined}>${reason}</${ActionButton}>`)}</p>
      <${Form} submit="Decline template" cancel=${() => setDeclining(false)} send=${(values) => decline(values.decline_reason ?? "")}
      done=${() => { toast("Template declined."); declined(); }}>${(errors) => html`
      <${Field} label="Another reason" name="decline_reason" maxlength="500"
        errors=${{ ...errors, decline_reason: errors.reason }} />`}</${Form}>`}
  </div>`;
}
