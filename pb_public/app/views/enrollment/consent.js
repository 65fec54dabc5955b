// The consent step: what the patient agreed to, how, and when. An active consent is shown and is not required again.
import { get, post } from "../../api.js";
import { Field, Form } from "../../ui/form.js";
import { day, humanize } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { localInput } from "../../ui/time.js";
import { html, useRef } from "../../view.js";

/** @type {[string, string][]} */
export const consentTypes = [["rpm", "Remote monitoring"], ["ccm", "Chronic care management"], ["data_sharing", "Data sharing"],
  ["messaging", "Messaging"]];
/** @param {string} code */
export const consentName = (code) => consentTypes.find(([type]) => type === code)?.[1] ?? humanize(code);

/** Standard text for a consent note, to be edited. */
const standardText = "Explained remote monitoring, possible cost sharing for the patient, that only one practice bills it at a time,"
  + " and that the patient can stop it at any time. The patient agreed.";

/** @param {{errors: Record<string, string[]>}} props */
export function ConsentFields({ errors }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const write = () => {
    const note = /** @type {HTMLTextAreaElement | null} */ (box.current?.querySelector("textarea") ?? null);
    if (note) {
      note.value = [note.value.trim(), standardText].filter(Boolean).join(" ");
      note.dispatchEvent(new Event("input", { bubbles: true }));
      note.focus();
    }
  };
  return html`<div class="fields">
      <${Field} label="Consent to" name="type" kind="select" value="rpm" options=${consentTypes} errors=${errors} />
      <${Field} label="Method" name="method" kind="select" value="verbal"
        options=${[["verbal", "Verbal"], ["written", "Written"], ["electronic", "Electronic"]]} errors=${errors} />
      <${Field} label="Given on" name="granted_at" kind="date" value=${localInput().slice(0, 10)} errors=${errors} />
      <${Field} label="Until" name="expires_at" kind="date" hint="Leave blank if valid until revoked" errors=${errors} />
    </div>
    <div ref=${box} class="with-words"><${Field} label="Note" name="notes" kind="textarea"
      hint="Required for verbal consent: what was discussed"
      errors=${errors} />
      <button type="button" onClick=${write}>Insert standard text</button></div>
    <${Field} label="Document location or link" name="document_reference" errors=${errors} />`;
}

/** @param {import("./steps.js").StepProps} props */
export function Consent({ patient, submit, saved }) {
  const list = useLoad((signal) => get(`patients/${patient.id}/consents/`, { page_size: 50 }, signal), [patient.id]);
  const form = () => html`<${Form} submit=${submit} draft=${`enrol:${patient.id}:consent`}
    send=${(values) => post(`patients/${patient.id}/consents/`, values)}
    done=${() => saved()}>${(errors) => html`<${ConsentFields} errors=${errors} />`}</${Form}>`;
  return html`<${Loaded} from=${list}>${(data) => {
    const active = data.results.filter((c) => c.status === "active");
    return html`${active.length > 0 && html`<ul class="enrol-held">${active.map((c) => html`<li key=${c.id}><span class="badge good"><span
      aria-hidden="true">✓</span> ${consentName(c.type)}</span>
        ${humanize(c.method)}, ${day(c.granted_at)}${c.expires_at ? ` until ${day(c.expires_at)}` : ""}</li>`)}</ul>`}
      ${active.some((c) => c.type === "rpm") ? html`<details><summary>Record another consent</summary>${form()}</details>` : form()}`;
  }}</${Loaded}>`;
}
