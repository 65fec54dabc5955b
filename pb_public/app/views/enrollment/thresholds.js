// The thresholds step: a matching template is proposed and never applied automatically; without one the practice's defaults apply.
import { get, post } from "../../api.js";
import { can } from "../../permissions.js";
import { go } from "../../router.js";
import { Field, Form } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { groups, limitsText } from "../../ui/vitals.js";
import { html } from "../../view.js";

/** @param {any} template */
const nameOf = (template) => `${template.name}, version ${template.version}${template.signed_off_by ? "" : " (not signed off)"}`;

/** @param {import("./steps.js").StepProps} props */
export function ThresholdsStep({ patient, submit, saved }) {
  const found = useLoad(async (signal) => {
    const [bounds, templates] = await Promise.all([get(`patients/${patient.id}/vital-config/`, {}, signal), get("threshold-templates/",
      { page_size: 100 }, signal)]);
    return { bounds, templates: templates.results };
  }, [patient.id]);
  return html`<${Loaded} from=${found}>${({ bounds, templates }) => {
    const proposed = templates.find((/** @type {any} */ one) => one.id === patient.proposed_template);
    const applied = bounds.templates ?? [];
    return html`
      ${patient.needs_thresholds ? html`<p
        class="notice warning"><strong>Needs thresholds.</strong> The practice’s defaults are for adults. Until thresholds are set,
          only values that are
          dangerous at every age raise an alert.</p>`
        : html`<p>${bounds.is_default ? "Using practice defaults."
          : `Set for this patient on ${dateTime(bounds.updated_at)} by ${bounds.updated_by}.`}${
          applied.length > 0 && ` From ${applied.map((/** @type {any} */ one) => `${one.name}, version ${one.version}`).join(" and ")}.`}
            </p>`}
      <${Bounds} of=${bounds} title="Active thresholds" />
      ${proposed && html`<section class="card" aria-labelledby="proposed"><h3
        id="proposed">Matches diagnoses and age: ${nameOf(proposed)}</h3><${Bounds} of=${proposed.thresholds} title=${proposed.name} />
        <p class="soft">Sources: ${proposed.sources.join("; ")}.</p></section>`}
      ${can("changeThresholds") && templates.length > 0 && html`<${Form}
        submit=${proposed ? `Apply and ${submit.charAt(0).toLowerCase()}${submit.slice(1)}` : "Apply template"} done=${() => saved()}
        send=${(values) => post(`patients/${patient.id}/vital-config/apply-template/`, { template_id: Number(values.template_id),
          reason: values.reason })}>${(errors) => html`<div class="fields">
        <${Field} label="Template" name="template_id" kind="select" value=${String(proposed?.id ?? templates[0]?.id ?? "")}
          options=${templates.map((one) => [String(one.id), nameOf(one)])}
          hint="Replaces this patient’s thresholds for the measures in the template." errors=${errors} />
        <${Field} label="Reason, if other than the template" name="reason" maxlength="500" errors=${errors} /></div>`}</${Form}>`}
      <button type="button" class="link"
        onClick=${() => go("patient", { id: patient.id, tab: "thresholds" })}>Edit thresholds individually</button>`;
  }}</${Loaded}>`;
}

/** The limits of each group in one line. @param {{of: any, title: string}} props */
const Bounds = ({ of, title }) => html`<dl class="facts" aria-label=${title}>${groups.filter(({ group }) => group in of).map(({ group,
  name }) => html`<div key=${group}><dt>${name}</dt><dd>${limitsText({ [group]: of[group] }) || "none"}</dd></div>`)}</dl>`;
