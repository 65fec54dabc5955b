// Forms and dialogs. Fields show the server's errors; errors of no visible field are shown above the button.
import { locateErrors, errorsOf } from "./errors.js";
import { asProblem } from "./states.js";
import { toast } from "./toast.js";
import { zoneLong } from "./zone.js";
import { draftOf, saveDraft } from "../drafts.js";
import { classes, html, useId, useLayoutEffect, useRef, useState } from "../view.js";
import { NewsInDialog } from "../views/alerts/announcement.js";
import { say, sayProblem } from "../language.js";

/**
 * A labeled control. kind is an input type, "select" (with options), "textarea" or "checkbox". A datetime-local field names its time zone.
 * @param {{label: string, name: string, kind?: string, options?: [string, string][], value?: any, hint?: string, errors?: Record<string,
 * string[]>, [attribute: string]: any}} props
 */
export function Field({ label, name, kind = "text", options = [], value, hint, errors = {}, ...rest }) {
  const id = useId();
  const wrong = errorsOf(errors, name);
  const help = kind === "datetime-local" ? [hint, zoneLong()].filter(Boolean).join(". ") : hint && say(hint);
  const described = [help && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || null;
  const common = { id, name, "aria-describedby": described, "aria-invalid": wrong ? "true" : null, ...rest };
  let control;
  if (kind === "select") {
    control = html`<${Select} common=${common} options=${options} value=${value ?? ""} />`;
  } else if (kind === "textarea") {
    control = html`<textarea rows="3" ...${common} defaultValue=${value ?? ""}></textarea>`;
  } else if (kind === "checkbox") {
    control = html`<input type="checkbox" ...${common} defaultChecked=${Boolean(value)} />`;
  } else {
    control = html`<input type=${kind} ...${common} defaultValue=${value ?? ""} />`;
  }
  return html`<div class=${classes("field", kind === "checkbox" && "check")}>
    <label for=${id}>${say(label)}${rest.required && html`<span class="soft"> (${say("required")})</span>`}</label>${control}
    ${help && html`<small id=${`${id}-hint`}>${help}</small>`}
    ${wrong && html`<small id=${`${id}-wrong`} class="wrong" role="alert">${wrong.join(" ")}</small>`}
  </div>`;
}

/** Keeps the choice while its form is rendered again, and follows value when that changes.
 *  @param {{common: Record<string, any>, options: [string, string][], value: string}} props */
function Select({ common, options, value }) {
  const [{ chosen, given }, choose] = useState({ chosen: value, given: value });
  const now = value === given ? chosen : value;
  const change = (/** @type {any} */ event) => {
    choose({ chosen: event.target.value, given: value });
    common.onChange?.(event);
  };
  return html`<select ...${common} value=${now} onChange=${change}>${options.map(([key, text]) =>
    html`<option key=${key} value=${key}>${say(text)}</option>`)}</select>`;
}

/** The values of a form by name: numbers as numbers, empty as null, checkboxes as booleans, multiple choices as a list.
 *  @param {HTMLFormElement} form @returns {Record<string, any>} */
export function valuesOf(form) {
  const values = {};
  for (const control of form.elements) {
    const { name, type, value, checked, dataset } = /** @type {HTMLInputElement} */ (control);
    if (!name || (type === "radio" && !checked)) {
      continue;
    }
    if (type === "checkbox") {
      values[name] = checked;
    } else if (dataset.list) {
      values[name] = value.split("\n").filter(Boolean);
    } else if (value.trim() === "") {
      values[name] = null;
    } else {
      values[name] = type === "number" ? Number(value) : value;
    }
  }
  return values;
}

/**
 * A form that sends its values by its button or by Ctrl or Cmd with Enter. Field errors are shown at their fields, including nested ones
 * (`icd10_codes.0`); several errors, and those of no field, also in a summary with links. children is a function of the field errors. done
 * receives the response of send. With draft (a key as in useDraft) the input survives a reload and an expired session until it is sent.
 * foot is placed next to the button; both stay visible at the lower edge of a form that is longer than the window.
 * @param {{send: (values: Record<string, any>) => Promise<any>, done?: (answer: any) => void, submit: string, danger?: boolean,
 * cancel?: () => void, draft?: string, foot?: (errors: Record<string, string[]>) => any,
 * children: (errors: Record<string, string[]>) => any}} props
 */
export function Form({ send, done, submit, danger, cancel, draft, foot, children }) {
  const [problem, setProblem] = useState(/** @type {import("../api.js").Problem | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const formDraft = useFormDraft(form, draft);
  const onSubmit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const answer = await send(valuesOf(/** @type {HTMLFormElement} */ (event.currentTarget)));
      setProblem(null);
      formDraft.clear();
      done?.(answer);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isBusy) {
      event.preventDefault();
      form.current?.requestSubmit();
    }
  };
  return html`<form onSubmit=${onSubmit} onKeyDown=${key} onInput=${formDraft.keep} onChange=${formDraft.keep} ref=${form} novalidate>
    ${formDraft.isRestored && html`<p class="soft" role="status">Draft restored.
      <button type="button" class="link" onClick=${formDraft.restart}>Start over</button></p>`}
    <${ErrorSummary} problem=${problem} form=${form} />
    ${children(problem?.fields ?? {})}
    <div class=${classes(foot && "form-foot")}>${foot?.(problem?.fields ?? {})}<${FormError} problem=${problem} />
      <div class="actions">
        ${cancel && html`<button type="button" class="quiet" onClick=${() => { formDraft.clear(); cancel(); }}>${say("Cancel")}</button>`}
        <button type="submit" class=${danger ? "danger" : "main"} disabled=${isBusy} title=${say("Ctrl or ⌘ with Enter")}>${
          say(isBusy ? "One moment" : submit)}</button>
      </div></div>
  </form>`;
}

/** Errors of the form as a whole. @param {{problem: import("../api.js").Problem | null}} props */
function FormError({ problem }) {
  const loose = problem && (Object.keys(problem.fields).length === 0 ? problem.message : problem.fields.non_field_errors?.join(" "));
  return loose && html`<p class="notice problem" role="alert">${sayProblem(loose)}</p>`;
}

/** The error summary: a link to each field if there are several, and the errors that no field shows. A single field receives the focus.
 *  @param {{problem: import("../api.js").Problem | null, form: {current: HTMLFormElement | null}}} props */
function ErrorSummary({ problem, form }) {
  const [list, setList] = useState(/** @type {import("./errors.js").Wrong[]} */ ([]));
  useLayoutEffect(() => {
    const found = problem && form.current ? locateErrors(form.current, problem.fields) : [];
    setList(found);
    found.find((one) => one.control)?.control?.focus();
  }, [problem]);
  if (list.length === 0 || (list.length === 1 && list[0].shown)) {
    return null;
  }
  return html`<div class="notice problem wrongs" role="alert"><strong><span aria-hidden="true">▲</span>
      ${" "}${say(list.length === 1 ? "1 field to correct:" : "{n} fields to correct:", { n: list.length })}</strong>
    <ul>${list.map((one) => html`<li key=${one.field}>${one.control
      ? html`<button type="button" class="link" onClick=${() => one.control?.focus()}>${one.label}</button>` : one.label}${one.shown ? ""
        : `: ${one.text}`}</li>`)}</ul>
  </div>`;
}

/** Notifies a control's listeners of a new value. @param {HTMLElement} control */
const notifyChange = (control) => control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input", { bubbles: true }));

/** Saves a form's input as a draft, except passwords, and restores it. @param {{current: HTMLFormElement | null}} form
 *  @param {string | undefined} draft */
function useFormDraft(form, draft) {
  const [isRestored, setRestored] = useState(false);
  useLayoutEffect(() => { // with the dialog: no key is typed before the draft is back
    const text = draft ? draftOf(draft) : "";
    for (const [name, value] of Object.entries(text ? JSON.parse(text) : {})) {
      const control = /** @type {HTMLInputElement | null} */ (form.current?.elements.namedItem(name) ?? null);
      if (control instanceof HTMLElement && control.type !== "hidden" && control.value !== String(value ?? "")) {
        if (control.type === "checkbox") {
          control.checked = Boolean(value);
        } else {
          control.value = String(value ?? "");
        }
        notifyChange(control);
        setRestored(true);
      }
    }
  }, []);
  const keep = () => {
    if (draft && form.current) {
      const secret = [...form.current.elements].filter((one) => /** @type {HTMLInputElement} */ (one).type === "password").map((one) =>
        /** @type {HTMLInputElement} */ (one).name);
      saveDraft(draft, JSON.stringify(Object.fromEntries(Object.entries(valuesOf(form.current)).filter(([name]) =>
        !secret.includes(name)))));
    }
  };
  const clear = () => { if (draft) { saveDraft(draft, ""); } };
  const restart = () => {
    form.current?.reset();
    [...form.current?.elements ?? []].forEach((control) => control instanceof HTMLElement && notifyChange(control));
    clear();
    setRestored(false);
  };
  return { isRestored, keep, clear, restart };
}

/** A modal dialog, closed with Escape. @param {{title: string, close: () => void, wide?: boolean, children: any}} props */
export function Dialog({ title, close, wide, children }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useLayoutEffect(() => { // immediately: the next keys are for the dialog
    const node = box.current;
    node?.showModal(); // focuses the close button
    if (!node?.querySelector("[autofocus]")) {
      const first = node?.querySelector("form :is(input:not([type=hidden]), select, textarea):enabled");
      /** @type {HTMLElement | null | undefined} */ (first)?.focus();
    }
    return () => node?.close(); // returns the focus
  }, []);
  return html`<dialog ref=${box} class=${classes(wide && "wide")} aria-labelledby=${id} onClose=${close} onCancel=${close}>
    <header><h2 id=${id}>${say(title)}</h2><button class="quiet" aria-label=${say("Close")} onClick=${close}>×</button></header>
    <${NewsInDialog} />${children}
  </dialog>`;
}

/** A button that acts immediately and shows the result; with undo, the toast offers Undo for ten seconds.
 *  @param {{act: () => Promise<any>, doneText?: string, done?: (answer: any) => void, undo?: (answer: any) => any, kind?: string,
 * children: any, [attribute: string]: any}} props */
export function ActionButton({ act, doneText, done, undo, kind = "", children, ...rest }) {
  const [isBusy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    try {
      const answer = await act();
      if (doneText) {
        toast(doneText, "done", { undo: undo && (() => undo(answer)) });
      }
      done?.(answer);
    } catch (error) {
      toast(asProblem(error).message, "problem");
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${kind} disabled=${isBusy} onClick=${press} ...${rest}>${children}</button>`;
}
