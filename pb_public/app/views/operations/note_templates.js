// The practice's note templates.
import { post, put, remove } from "../../api.js";
import { can } from "../../permissions.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

const contexts = /** @type {[string, string][]} */ ([["any", "Any note"], ["alert", "Alerts"], ["escalation", "Escalations"],
  ["note", "Calls and other notes"]]);

export function NoteTemplates() {
  const [revision, setRevision] = useState(0);
  const [dialog, setDialog] = useState(/** @type {any} */ (null));
  const done = () => { setDialog(null); setRevision((n) => n + 1); };
  const actions = { name: "act", head: html`<span class="unseen">Actions</span>`, cell: (/** @type {any} */ t) => html`
    <button class="quiet" aria-label=${`Edit ${t.name}`} onClick=${() => setDialog(t)}>Edit</button>
    <${ActionButton} kind="quiet" act=${() => remove(`note-templates/${t.id}/`)} doneText="Removed." done=${done}
      aria-label=${`Remove ${t.name}`}>Remove</${ActionButton}>` };
  return html`<div class="heading"><p class="soft">Available in notes of the selected kind, and editable there.</p>
      ${can("manageNoteTemplates") && html`<button class="main" onClick=${() => setDialog({})}>Add a note template</button>`}</div>
    <${List} path="note-templates/" query=${{}} turn=${revision} caption="Note templates" nothing="No note templates yet" columns=${[
      { name: "name", head: "Name" },
      { name: "context", head: "For", cell: (/** @type {any} */ t) => contexts.find(([code]) => code === t.context)?.[1] },
      { name: "text", head: "Text" }, ...(can("manageNoteTemplates") ? [actions] : []),
    ]} />
    ${dialog && html`<${NoteTemplate} template=${dialog} close=${() => setDialog(null)} done=${done} />`}`;
}

/** @param {{template: any, close: () => void, done: () => void}} props one without an id is new */
const NoteTemplate = ({ template: t, close, done }) => html`<${Dialog} title=${t.id ? `Edit ${t.name}` : "Add a note template"}
  close=${close}>
  <${Form} submit="Save" cancel=${close} draft=${`note-template.${t.id ?? "new"}`}
    send=${(/** @type {any} */ values) => (t.id ? put(`note-templates/${t.id}/`, values) : post("note-templates/", values))}
    done=${() => { toast("Saved."); done(); }}>${(/** @type {any} */ errors) => html`
    <${Field} label="Name" name="name" maxlength="100" value=${t.name} errors=${errors} />
    <${Field} label="For" name="context" kind="select" value=${t.context ?? "any"} options=${contexts} errors=${errors} />
    <${Field} label="Text" name="text" kind="textarea" rows="5" maxlength="2000" value=${t.text} errors=${errors}
      hint="Visible to all staff: do not include names, dates of birth or other patient details" />`}
  </${Form}>
</${Dialog}>`;
