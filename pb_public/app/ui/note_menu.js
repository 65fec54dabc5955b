// The menu of note templates that opens when the user types a slash and a part of a template's name.
import { html, useEffect, useId, useRef, useState } from "../view.js";

const shown = 6;

/** The text between a slash at the start of a word and the cursor; null for none. @param {HTMLTextAreaElement} note */
const termOf = (note) => /(?:^|\s)\/([^/\n]{0,40})$/.exec(note.value.slice(0, note.selectionStart))?.[1] ?? null;

/** Above or below the note, where there is more space. @param {HTMLElement} note */
function placeAt(note) {
  const { left, top, bottom, width } = note.getBoundingClientRect();
  return { left: `${left}px`, width: `${width}px`, ...(top + bottom > innerHeight ? { top: "auto", bottom: `${innerHeight - top}px` }
    : { top: `${bottom}px` }) };
}

/** @param {{texts: any[], into: () => HTMLTextAreaElement | null,
 * insert: (note: HTMLTextAreaElement, text: string, instead: number) => void}} props */
export function NoteMenu({ texts, into, insert }) {
  const id = useId();
  const [term, setTerm] = useState(/** @type {string | null} */ (null));
  const [index, setIndex] = useState(0);
  const note = into();
  const words = term?.toLowerCase().split(/\s+/) ?? [];
  const found = term === null ? [] : texts.filter((one) => words.every((word) => one.name.toLowerCase().includes(word))).slice(0, shown);
  const choose = (/** @type {any} */ one) => {
    setTerm(null);
    if (note) {
      insert(note, one.text, (term ?? "").length + 1);
    }
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const acts = by || ["Enter", "Tab", "Escape"].includes(event.key);
    if (found.length === 0 || !acts || event.ctrlKey || event.metaKey || event.shiftKey || event.isComposing) {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation(); // no new line, and the focus stays in the note
    if (by) {
      setIndex((index + by + found.length) % found.length);
    } else if (event.key === "Escape") {
      setTerm(null);
    } else {
      choose(found[index]);
    }
  };
  const latest = useRef(key);
  latest.current = key;
  useEffect(() => {
    const look = () => { setTerm(note && termOf(note)); setIndex(0); };
    const press = (/** @type {KeyboardEvent} */ event) => latest.current(event);
    const shut = () => setTerm(null);
    note?.addEventListener("input", look);
    note?.addEventListener("keydown", press, true);
    note?.addEventListener("blur", shut);
    return () => {
      note?.removeEventListener("input", look);
      note?.removeEventListener("keydown", press, true);
      note?.removeEventListener("blur", shut);
    };
  }, [note]);
  useEffect(() => {
    const attributes = { "aria-controls": `${id}-list`, "aria-activedescendant": `${id}-${index}` };
    for (const [name, value] of Object.entries(attributes)) {
      found.length > 0 ? note?.setAttribute(name, value) : note?.removeAttribute(name);
    }
  }, [note, found.length > 0, index]);
  return found.length > 0 && note && html`<ul id=${`${id}-list`} role="listbox" aria-label="Note templates" class="combo-list note-menu"
    style=${placeAt(note)}>${found.map((one, i) => html`<li key=${one.id} id=${`${id}-${i}`} role="option"
      aria-selected=${i === index ? "true" : "false"} onPointerDown=${(event) => event.preventDefault()} onPointerMove=${() => setIndex(i)}
      onClick=${() => choose(one)}>${one.name} <small>${one.text.slice(0, 60)}</small></li>`)}</ul>`;
}
