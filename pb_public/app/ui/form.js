// Forms: fields that show what the service says about them, and dialogs to hold them.
import { asProblem } from "./states.js";
import { toast } from "./toast.js";
import { classes, html, useEffect, useId, useRef, useState } from "../view.js";

/**
 * A labelled control. kind is an input type, "select" (with options), "textarea" or "checkbox".
 * @param {{label: string, name: string, kind?: string, options?: [string, string][], value?: any, hint?: string, errors?: Record<string, string[]>, [attribute: string]: any}} props
 */
export function Field({ label, name, kind = "text", options = [], value, hint, errors = {}, ...rest }) {
  const id = useId();
  const wrong = errors[name];
  const described = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || null;
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
    <label for=${id}>${label}</label>${control}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${wrong && html`<small id=${`${id}-wrong`} class="wrong" role="alert">${wrong.join(" ")}</small>`}
  </div>`;
}

/** Keeps what was chosen while its form is drawn anew, and follows value when that changes. @param {{common: Record<string, any>, options: [string, string][], value: string}} props */
function Select({ common, options, value }) {
  const [{ chosen, given }, choose] = useState({ chosen: value, given: value });
  const now = value === given ? chosen : value;
  const change = (/** @type {any} */ event) => {
    choose({ chosen: event.target.value, given: value });
    common.onChange?.(event);
  };
  return html`<select ...${common} value=${now} onChange=${change}>${options.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}</select>`;
}

/** The values of a form by name: numbers as numbers, empty as null, check boxes as booleans. @param {HTMLFormElement} form @returns {Record<string, any>} */
export function valuesOf(form) {
  const values = {};
  for (const control of form.elements) {
    const { name, type, value, checked } = /** @type {HTMLInputElement} */ (control);
    if (!name || (type === "radio" && !checked)) {
      continue;
    }
    if (type === "checkbox") {
      values[name] = checked;
    } else if (value.trim() === "") {
      values[name] = null;
    } else {
      values[name] = type === "number" ? Number(value) : value;
    }
  }
  return values;
}

/**
 * A form that sends its values; the service's field errors go to the fields, anything else stands above the button.
 * children is a function of the field errors. send's answer goes to done.
 * @param {{send: (values: Record<string, any>) => Promise<any>, done?: (answer: any) => void, submit: string, danger?: boolean, cancel?: () => void, children: (errors: Record<string, string[]>) => any}} props
 */
export function Form({ send, done, submit, danger, cancel, children }) {
  const [problem, fail] = useState(/** @type {import("../api.js").Problem | null} */ (null));
  const [busy, work] = useState(false);
  const onSubmit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    work(true);
    try {
      const answer = await send(valuesOf(/** @type {HTMLFormElement} */ (event.currentTarget)));
      fail(null);
      done?.(answer);
    } catch (error) {
      fail(asProblem(error));
    } finally {
      work(false);
    }
  };
  const loose = problem && (Object.keys(problem.fields).length === 0 ? problem.message : problem.fields.non_field_errors?.join(" "));
  return html`<form onSubmit=${onSubmit} novalidate>
    ${children(problem?.fields ?? {})}
    ${loose && html`<p class="notice problem" role="alert">${loose}</p>`}
    <div class="actions">
      ${cancel && html`<button type="button" class="quiet" onClick=${cancel}>Cancel</button>`}
      <button type="submit" class=${danger ? "danger" : "main"} disabled=${busy}>${busy ? "One moment" : submit}</button>
    </div>
  </form>`;
}

/** A modal dialog, closed with Escape. @param {{title: string, close: () => void, wide?: boolean, children: any}} props */
export function Dialog({ title, close, wide, children }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const node = box.current;
    node?.showModal();
    return () => node?.close(); // which gives the focus back to where it was
  }, []);
  return html`<dialog ref=${box} class=${classes(wide && "wide")} aria-labelledby=${id} onClose=${close} onCancel=${close}>
    <header><h2 id=${id}>${title}</h2><button class="quiet" aria-label="Close" onClick=${close}>×</button></header>
    ${children}
  </dialog>`;
}

/** A button that does one thing at once and says how it went. @param {{act: () => Promise<any>, said?: string, done?: (answer: any) => void, kind?: string, children: any, [attribute: string]: any}} props */
export function ActionButton({ act, said, done, kind = "", children, ...rest }) {
  const [busy, work] = useState(false);
  const press = async () => {
    work(true);
    try {
      const answer = await act();
      if (said) {
        toast(said);
      }
      done?.(answer);
    } catch (error) {
      toast(asProblem(error).message, "problem");
    } finally {
      work(false);
    }
  };
  return html`<button type="button" class=${kind} disabled=${busy} onClick=${press} ...${rest}>${children}</button>`;
}
