// Submits many reviewed entries in one call, and shows the result.
import { post } from "../../api.js";
import { Dialog, Field, Form } from "../../ui/form.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { html, useState } from "../../view.js";

/** @param {{find: () => Promise<string[]>, close: () => void, done: () => void}} props */
export function SubmitMany({ find, close, done }) {
  const ids = useLoad(find, []);
  const [result, setResult] = useState(/** @type {any} */ (null));
  const submit = (/** @type {Record<string, any>} */ values) =>
    post("billing/claims/submit/", { entry_ids: ids.data, submission_reference: values.submission_reference });
  return html`<${Dialog} title="Submit claims" close=${close}>
    ${result ? html`<${Outcome} answer=${result} close=${close} />` : html`
      <${Loaded} from=${ids} empty=${(data) => data.length === 0} nothing=${html`<${EmptyState}
        title="No reviewed entries">Review entries first;
        reviewed entries can be submitted.</${EmptyState}>`}>
        ${(data) => html`<p>${data.length === 1 ? "One reviewed entry" : `${data.length} reviewed entries`} will be submitted.</p>
          <${Form} submit="Submit" cancel=${close} send=${submit} done=${(answer) => { setResult(answer); done(); }}>${(errors) => html`
            <${Field} label="Batch reference" name="submission_reference" maxlength="100" hint="Leave blank to create one automatically"
              errors=${errors} />`}
          </${Form}>`}
      </${Loaded}>`}
  </${Dialog}>`;
}

/** @param {{answer: any, close: () => void}} props */
function Outcome({ answer, close }) {
  const left = answer.details.filter((one) => one.status === "skipped");
  return html`<p role="status"><strong>${answer.submitted} submitted</strong>, ${answer.skipped} skipped.</p>
    ${left.length > 0 && html`<ul>${left.map((one) => html`<li key=${one.id}>${one.reason}</li>`)}</ul>`}
    <div class="actions"><button class="main" onClick=${close}>Done</button></div>`;
}
