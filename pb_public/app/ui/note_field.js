// A note field with the practice's note templates.
import { getAll, lastWrite } from "../api.js";
import { can } from "../permissions.js";
import { me } from "../session.js";
import { effect, html, useRef } from "../view.js";
import { Field } from "./form.js";
import { NoteMenu } from "./note_menu.js";
import { useLoad } from "./states.js";

/** @typedef {"alert" | "escalation" | "note"} Context the subject of a note */

const maxTemplates = 2000; // more templates than any practice has
const cacheTime = 60_000; // milliseconds; moving between patients needs one request
/** @type {Map<string, {at: number, texts: Promise<any[]>}>} requests by user and context */
const cache = new Map();

effect(() => {
  if (lastWrite.value.path.startsWith("note-templates/")) {
    cache.clear();
  }
});

/** @param {Context} context @returns {Promise<any[]>} */
function loadTemplates(context) {
  if (!can("readNoteTemplates")) {
    return Promise.resolve([]);
  }
  const key = `${me.peek()?.id} ${context}`;
  const known = cache.get(key);
  if (known && Date.now() - known.at < cacheTime) {
    return known.texts;
  }
  const texts = getAll("note-templates/", { context }, maxTemplates);
  texts.catch(() => cache.delete(key));
  cache.set(key, { at: Date.now(), texts });
  return texts;
}

/** A textarea in a form. @param {{context: Context, label: string, name: string, [attribute: string]: any}} props */
export function NoteField({ context, ...field }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  return html`<div ref=${box} class="with-texts"><${Field} ...${field} kind="textarea" />
    <${NoteTexts} context=${context} into=${() => box.current?.querySelector("textarea") ?? null} /></div>`;
}

/** A menu of the templates for the context; hidden if there are none.
 *  @param {{context: Context, into: () => HTMLTextAreaElement | null}} props */
export function NoteTexts({ context, into }) {
  const texts = useLoad(() => loadTemplates(context), [context]).data ?? [];
  const choose = (/** @type {any} */ event) => {
    const chosen = texts.find((/** @type {any} */ one) => String(one.id) === event.target.value);
    event.target.value = "";
    const note = into();
    if (chosen && note) {
      insert(note, chosen.text);
    }
  };
  return texts.length > 0 && html`<select class="texts" aria-label="Insert a note template" title="Or type / and its name in the note"
      onChange=${choose}>
    <option value="">Insert a template…</option>
    ${texts.map((/** @type {any} */ one) => html`<option key=${one.id} value=${one.id}>${one.name}</option>`)}</select>
    <${NoteMenu} texts=${texts} into=${into} insert=${insert} />`;
}

/** Inserts a text at the cursor, with a space before it, in place of the last typed letters.
 *  @param {HTMLTextAreaElement} note @param {string} text @param {number} [instead] the number of letters to replace */
function insert(note, text, instead = 0) {
  const from = note.selectionStart - instead;
  const before = note.value.slice(0, from);
  note.setRangeText((before === "" || /\s$/.test(before) ? "" : " ") + text, from, note.selectionEnd, "end");
  note.dispatchEvent(new Event("input", { bubbles: true }));
  note.focus();
}
