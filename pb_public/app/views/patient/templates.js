// Threshold templates: the one that matches the patient, and a form to apply one. None is applied automatically.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { Field, Form } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** The thresholds of a template in words. @param {Record<string, Record<string, number | null> | null>} thresholds */
export const boundsInWords = (thresholds) => Object.entries(thresholds).map(([group, fields]) => `${group.replaceAll("_", " ")}: ${
  fields === null ? "off" : Object.entries(fields).map(([field, value]) => `${field.replaceAll("_", " ")} ${value ?? "none"}`).join(", ")}`)
    .join("; ");

/** @param {any} template */
const nameOf = (template) => `${template.name}, version ${template.version}${template.signed_off_by ? "" : " (not signed off)"}`;

/** @param {{id: string, applied: any[], done: () => void}} props */
export function Templates({ id, applied, done }) {
  const all = useLoad((signal) => get("threshold-templates/", { page_size: 100 }, signal), []);
  const patient = useLoad((signal) => get(`patients/${id}/`, {}, signal), [id, applied.length]);
  const p = patient.data;
  const proposed = all.data?.results.find((/** @type {any} */ template) => template.id === p?.proposed_template);
  return html`<div class="card">
    <h3>Templates</h3>
    ${p?.needs_thresholds && html`<p class="notice warning" role="status"><strong>Needs thresholds.</strong> The practice’s defaults are for
      adults. Until thresholds are set, only values that are dangerous at every age raise an alert.</p>`}
    ${proposed && html`<p class="notice" role="status"><strong>${proposed.name}</strong> matches the diagnoses and
      age: ${boundsInWords(proposed.thresholds)}. Sources: ${proposed.sources.join("; ")}.</p>`}
    ${applied.length > 0
      && html`<p class="soft">Applied: ${applied.map((one) => `${one.name}, version ${one.version}, on ${dateTime(one.at)}${one.by
      ? ` by ${one.by}` : ""}`).join("; ")}.</p>`}
    ${can("changeThresholds")
      && html`<${Loaded} from=${all}>${(data) => html`<${Form} submit="Apply template" send=${(values) =>
      post(`patients/${id}/vital-config/apply-template/`, { template_id: Number(values.template_id), reason: values.reason })}
      done=${() => { toast("Template applied."); done(); }}>${(errors) => html`
      <${Field} label="Template" name="template_id" kind="select" value=${String(proposed?.id ?? data.results[0]?.id ?? "")}
        options=${data.results.map((template) => [String(template.id), nameOf(template)])}
        hint="Replaces this patient’s thresholds for the measures in the template." errors=${errors} />
      <${Field} label="Reason, if other than the template" name="reason" maxlength="500" errors=${errors} />`}</${Form}>`}</${Loaded}>`}
  </div>`;
}
