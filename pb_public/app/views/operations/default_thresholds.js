// The practice's default thresholds, for patients without thresholds of their own.
import { get, put } from "../../api.js";
import { can } from "../../permissions.js";
import { Field, Form } from "../../ui/form.js";
import { dateTime } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html } from "../../view.js";
import { changesOf, ThresholdGrid } from "../patient/threshold_grid.js";

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
  const may = can("changeDefaults");
  const grid = (/** @type {Record<string, string[]>} */ errors) => html`<${ThresholdGrid} now=${bounds} disabled=${!may}
    errors=${errors} />`;
  return may ? html`<${Form} submit="Save" send=${(values) => put(path, { ...changesOf(bounds, values), reason: values.reason ?? "" })}
    done=${(answer) => { toast("Saved."); saved(answer); }}>${(errors) => html`
    ${grid(errors)}<${Field} label="Reason for change" name="reason" kind="textarea" maxlength="500" errors=${errors} />`}</${Form}>`
      : grid({});
}
