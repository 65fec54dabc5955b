// A combobox: finds choices while the user types, and takes one with the arrow keys and Enter, or by a click.
import { errorsOf } from "./errors.js";
import { asProblem } from "./states.js";
import { classes, html, useEffect, useId, useRef, useState } from "../view.js";

/** @typedef {{value: string, text: string, more?: string, disabled?: string}} Option more is extra text; disabled is the reason why it
 * cannot be chosen */

const debounceTime = 250; // milliseconds without a key before a request

/**
 * A combobox. find returns the choices for the typed text ("" at first, if `eager`). With a name the value is part of the surrounding form;
 * with `many` it is a list, shown as chips. chosen is called at each change. The errors of `name` and of `name.0`, `name.1`… are shown.
 * @param {{label: string, name?: string, find: (term: string, signal: AbortSignal) => Promise<Option[]>, value?: Option | Option[] | null,
 * many?: boolean,   eager?: boolean, chosen?: (choice: any) => void, placeholder?: string, hint?: string, nothing?: string, errors?:
 * Record<string, string[]>,   typed?: (term: string) => Option | null, autofocus?: boolean, disabled?: boolean, careful?: boolean}} props
 * typed returns a choice for text that is not in the list, such as an unlisted code; null for none. careful: Enter takes the only result or
 * one that the user moved to, never the first of several.
 */
export function Combo({ label, name = "", find, value, many = false, eager = false, chosen, placeholder, hint, nothing = "Nothing matches.",
  errors = {}, typed, autofocus, disabled, careful = false }) {
  const id = useId();
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [picked, setPicked] = useState(/** @type {Option[]} */ ([value ?? []].flat()));
  const [term, setTerm] = useState("");
  const [open, setOpen] = useState(false);
  const [index, setIndex] = useState(0);
  const [isEnterPending, setEnterPending] = useState(false); // Enter was pressed before the results arrived, and applies to them
  const { found, of, message } = useFound(find, term, (open || isEnterPending) && (eager || term.length > 0));
  const free = (found ?? []).filter((one) => !many || !picked.some((p) => p.value === one.value));
  const updatePicked = (/** @type {Option[]} */ next) => {
    setPicked(next);
    chosen?.(many ? next : next[0] ?? null);
  };
  const choose = (/** @type {Option | null | undefined} */ one) => {
    if (!one || one.disabled) {
      return;
    }
    updatePicked(many ? [...picked, one] : [one]);
    const here = document.activeElement === input.current || !isEnterPending; // otherwise the user has moved to another field
    setTerm("");
    setOpen(many && eager && here);
    setIndex(0);
    here && input.current?.focus();
  };
  const remove = (/** @type {Option} */ one) => {
    updatePicked(picked.filter((p) => p !== one));
    setTimeout(() => { // with the list closed: it would cover the next field
      input.current?.focus();
      setOpen(false);
    });
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      setOpen(true);
      setIndex(open && free.length > 0 ? (Math.max(index, by > 0 ? -1 : 0) + by + free.length) % free.length : 0);
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && (open || term)) {
      event.preventDefault();
      if (term.trim() !== "" && (found === null || of !== term.trim())) {
        setOpen(true);
        setEnterPending(true);
        return;
      }
      choose(free[index] ?? (found !== null ? typed?.(term.trim()) : null));
    } else if (event.key === "Escape" && open) {
      event.preventDefault(); // but not the surrounding dialog
      event.stopPropagation();
      setOpen(false);
    } else if (event.key === "Backspace" && term === "" && picked.length > 0) {
      remove(picked[picked.length - 1]);
    }
  };
  useEffect(() => {
    const exact = free.findIndex((one) => [one.value, one.text].some((text) => text.toLowerCase() === term.trim().toLowerCase()));
    const only = careful && free.length !== 1 ? -1 : 0;
    setIndex(Math.max(exact, only));
    if (isEnterPending && found !== null && of === term.trim()) {
      setEnterPending(false);
      choose(free[Math.max(exact, only)] ?? typed?.(term.trim()));
    }
  }, [found]);
  const wrong = (name && errorsOf(errors, name)) || [];
  const described = [`${id}-status`, wrong.length > 0 && `${id}-wrong`].filter(Boolean).join(" ");
  const choice = open && free[index] ? `${id}-${index}` : null;
  const words = message || (open && found ? (free.length === 0 ? nothing : `${free.length} found`) : hint ?? "");
  return html`<div class=${classes("field combo", many && "many")} onFocusOut=${(event) => event.currentTarget.contains(event.relatedTarget)
    || setOpen(false)}>
    <label for=${id}>${label}</label>
    ${name && html`<input type="hidden" name=${name} value=${picked.map((p) => p.value).join("\n")} data-list=${many ? "true" : null} />`}
    <div class="combo-box">
      ${picked.map((one) => html`<span class="chip" key=${one.value}><bdi>${one.text}</bdi>
        <button type="button" class="quiet" aria-label=${`Remove ${one.text}`} disabled=${disabled} onClick=${() =>
          remove(one)}>×</button></span>`)}
      <input id=${id} ref=${input} type="text" role="combobox" autocomplete="off" spellcheck=${false} aria-expanded=${open
        && free.length > 0 ? "true" : "false"}
        aria-controls=${`${id}-list`} aria-autocomplete="list" aria-activedescendant=${choice} aria-describedby=${described}
          aria-invalid=${wrong.length > 0 ? "true" : null}
        data-field=${name || null} placeholder=${picked.length === 0 ? placeholder
          : null} value=${term} autofocus=${autofocus} disabled=${disabled}
        onInput=${(event) => { setEnterPending(false); setTerm(event.target.value); setOpen(true);
          setIndex(careful ? -1 : 0); }} onFocus=${() =>
          eager && (many || picked.length === 0) && setOpen(true)} onClick=${() => eager && setOpen(true)} onKeyDown=${key} />
    </div>
    <ul id=${`${id}-list`} role="listbox" aria-label=${label} class="combo-list" hidden=${!open || free.length === 0}>${free.map((one, i) =>
      html`
      <li key=${one.value} id=${`${id}-${i}`} role="option" aria-selected=${i === index ? "true" : "false"} aria-disabled=${one.disabled
        ? "true" : null}
        onPointerDown=${(event) => event.preventDefault()} onPointerMove=${() => i === index || setIndex(i)} onClick=${() => choose(one)}>
        <bdi>${one.text}</bdi>${(one.disabled || one.more) && html` <small>${one.disabled ?? one.more}</small>`}</li>`)}</ul>
    <small id=${`${id}-status`} role="status">${words}</small>
    ${wrong.length > 0 && html`<small id=${`${id}-wrong`} class="wrong" role="alert">${wrong.join(" ")}</small>`}
  </div>`;
}

/** The results of find for a term, a moment after the last key. @param {(term: string, signal: AbortSignal) => Promise<Option[]>} find
 *  @param {string} term @param {boolean} wanted */
function useFound(find, term, wanted) {
  const [{ found, of }, show] = useState({ found: /** @type {Option[] | null} */ (null), of: "" });
  const [message, setMessage] = useState("");
  const latest = useRef(find);
  latest.current = find;
  useEffect(() => {
    if (!wanted) {
      return show({ found: null, of: "" });
    }
    const cancel = new AbortController();
    const timer = setTimeout(() => {
      latest.current(term.trim(), cancel.signal).then((options) => {
        if (!cancel.signal.aborted) { // not every caller honors the signal
          show({ found: options, of: term.trim() });
          setMessage("");
        }
      },
        (error) => { cancel.signal.aborted || setMessage(asProblem(error).message); });
    }, term ? debounceTime : 0);
    return () => { clearTimeout(timer); cancel.abort(); };
  }, [term, wanted]);
  return { found, of, message };
}
