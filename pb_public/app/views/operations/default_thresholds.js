// The practice's default thresholds, for patients without thresholds of their own.
import { get, put } from "../../api.js";
import { can } from "../../permissions.js";
import { Field, Form } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { groups, patientOnlyBounds } from "../../ui/vitals.js";
import { html, useState } from "../../view.js";
import { changesOf } from "../patient/thresholds.js";

const path = "settings/default-thresholds/";

export function DefaultThresholds() {
  const bounds = useLoad((signal) => get(path, {}, signal), []);
  return html`<${Loaded} from=${bounds}>${(data) => html`<section class="card"><h2>Practice thresholds</h2>
    <p class="soft">${data.updated_at ? `Set on ${dateTime(data.updated_at)} by ${data.updated_by}.`
      : "Factory defaults."} Apply to patients without thresholds of their own. No alert for empty limits.</p>
    <${Bounds} key=${data.updated_at} bounds=${data} saved=${(next) => bounds.change(() => next)} /></section>`}
  </${Loaded}>`;
}

/** @param {{bounds: any, saved: (bounds: any) => void}} props */
function Bounds({ bounds, saved }) {
  const [enabled, setEnabled] = useState(Object.fromEntries(groups.map(({ group }) => [group, bounds[group] !== null])));
  const may = can("changeDefaults");
  const fields = (/** @type {Record<string, string[]>} */ errors) => groups.map(({ group, name, fields: inputs }) =>
    html`<fieldset key=${group} class="bounds" disabled=${!may}><legend>${name}</legend>
    <${Field} label="Alerts on" name=${`${group}.on`} kind="checkbox" value=${enabled[group]} onChange=${(event) =>
      setEnabled({ ...enabled, [group]: event.target.checked })} errors=${errors} />
    <div class="fields"
      hidden=${!enabled[group]}>${inputs.filter(([field]) => !patientOnlyBounds.includes(field)).map(([field, label]) => html`
      <${Field} key=${field} label=${label} name=${`${group}.${field}`} kind="number" step="any" value=${bounds[group]?.[field]}
        errors=${errors} />`)}</div>
  </fieldset>`);
  return may ? html`<${Form} submit="Save" send=${(values) => put(path, { ...changesOf(bounds, values), reason: values.reason ?? "" })}
    done=${(answer) => { toast("Saved."); saved(answer); }}>${(errors) => html`
    ${fields(errors)}<${Field} label="Reason for change" name="reason" kind="textarea" maxlength="500" errors=${errors} />`}</${Form}>`
      : fields({});
}
