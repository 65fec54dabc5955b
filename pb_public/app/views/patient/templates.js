// The sets of bounds for patients of a kind: what fits this one, and a way to give it. Nothing is given by itself.
import { get, post } from "../../api.js";
import { can } from "../../can.js";
import { Field, Form } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";

/** What a template sets, in words. @param {Record<string, Record<string, number | null> | null>} thresholds */
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
    ${p?.needs_thresholds && html`<p class="notice warning" role="status"><strong>Needs thresholds.</strong> The practice's bounds are for
      adults. Until bounds are set, only values that mean danger at every age raise an alert.</p>`}
    ${proposed && html`<p class="notice" role="status"><strong>${proposed.name}</strong> fits the diagnoses and
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
        hint="It replaces this patient's bounds in the groups that it sets." errors=${errors} />
      <${Field} label="Reason, if other than the template" name="reason" maxlength="500" errors=${errors} />`}</${Form}>`}</${Loaded}>`}
  </div>`;
}
