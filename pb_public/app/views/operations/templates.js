// The threshold templates, with their sources and sign-offs.
import { put } from "../../api.js";
import { can } from "../../permissions.js";
import { Badge } from "../../ui/badge.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { limitsText } from "../../ui/vitals.js";
import { html, useState } from "../../view.js";

export function ThresholdTemplates() {
  const [revision, setRevision] = useState(0);
  const [template, setTemplate] = useState(/** @type {any} */ (null));
  return html`<p
    class="soft">Starting thresholds for patients with a diagnosis. A clinician applies them in the patient’s thresholds; patients
    keep the version that was applied. Each version is signed off separately.</p>
    <${List} path="threshold-templates/" query=${{}} turn=${revision} caption="Threshold templates" nothing="No templates yet" columns=${[
      { name: "name", head: "Template", cell: (t) => html`${t.name}<span class="two">version ${t.version}</span>` },
      { name: "diagnoses", head: "For", cell: (t) => html`${t.diagnoses.join(", ") || "any diagnosis"}<span class="two">${ages(t)}
        </span>` },
      { name: "thresholds", head: "Limits", cell: (t) => limitsText(t.thresholds) },
      { name: "sources", head: "Sources", cell: (t) => t.sources.join("; ") },
      { name: "signed_off_by", head: "Signed off", cell: (t) =>
        (t.signed_off_by ? html`${t.signed_off_by}<span class="two">${dateTime(t.signed_off_at)}</span>`
        : html`<${Badge} of="warning" text="Not signed off" />`) },
      ...(can("changeDefaults") ? [{ name: "act", head: html`<span class="unseen">Actions</span>`, cell: (t) => !t.signed_off_by
        && html`<button onClick=${() => setTemplate(t)} aria-label=${`Sign off ${t.name}`}>Sign off</button>` }] : []),
    ]} />
    ${template && html`<${SignOff} template=${template} close=${() => setTemplate(null)}
      done=${() => { setTemplate(null); setRevision(revision + 1); }} />`}`;
}

/** @param {{min_age: number | null, max_age: number | null}} template */
const ages = ({ min_age: least, max_age: most }) => (least === null && most === null ? "any age"
  : `${least ?? 0} to ${most ?? "any"} years`);

/** @param {{template: any, close: () => void, done: () => void}} props */
const SignOff = ({ template, close, done }) => html`<${Dialog} title=${`Sign off ${template.name}, version ${template.version}`}
  close=${close}>
  <p>${limitsText(template.thresholds)}</p>
  <${Form} submit="Sign off" cancel=${close} send=${(values) => put(`threshold-templates/${template.id}/`,
    { ...template, signed_off_by: values.signed_off_by, signed_off_at: null })}
    done=${() => { toast("Signed off."); done(); }}>${(errors) => html`<${Field} label="Physician" name="signed_off_by" maxlength="254"
      errors=${errors} />`}</${Form}>
</${Dialog}>`;
