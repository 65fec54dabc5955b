// Chooses a patient by name or MRN, in a form or a filter.
import { get } from "../api.js";
import { asProblem } from "./states.js";
import { toast } from "./toast.js";
import { html, useEffect, useId, useRef, useState } from "../view.js";

/** @typedef {{id: string, first_name: string, last_name: string, mrn: string, date_of_birth?: string}} Patient */

const debounceTime = 300; // milliseconds without a key before a request

/** @param {Patient} p */
export const patientLabel = (p) => `${p.last_name}, ${p.first_name} · ${p.mrn}`;

/**
 * first is the id of the initial patient. chosen receives a patient, or null when the choice is cleared. With a name the id is a value of
 * the surrounding form.
 * @param {{label: string, chosen: (patient: Patient | null) => void, first?: string, name?: string, hint?: string, errors?: Record<string,
 * string[]>}} props
 */
export function PatientPicker({ label, chosen, first = "", name, hint, errors = {} }) {
  const id = useId();
  const [patient, setPatient] = useState(/** @type {Patient | null} */ (null));
  const [term, setTerm] = useState("");
  const [{ found, of }, show] = useState({ found: /** @type {Patient[] | null} */ (null), of: "" });
  const [isEnterPending, setEnterPending] = useState(false); // Enter was pressed before the results arrived, and applies to them
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  useEffect(() => {
    if (term.length < 2) {
      return show({ found: null, of: "" });
    }
    const cancel = new AbortController();
    const timer = setTimeout(() => {
      get("patients/", { search: term, page_size: 8 }, cancel.signal).then(({ results }) => show({ found: results, of: term }),
        (error) => cancel.signal.aborted || toast(asProblem(error).message, "problem"));
    }, debounceTime);
    return () => { clearTimeout(timer); cancel.abort(); };
  }, [term]);
  useEffect(() => {
    if (first) { // a restored choice has no name yet
      get(`patients/${first}/`).then(setPatient, (error) => toast(asProblem(error).message, "problem"));
    }
  }, []);
  const choose = (/** @type {Patient | null} */ one) => {
    setPatient(one);
    setTerm("");
    chosen(one);
    if (!one) {
      setTimeout(() => input.current?.focus());
    }
  };
  const enter = () => { // no patient is chosen by list position: with several, the first gets the focus
    setEnterPending(found === null || of !== term);
    if (found !== null && of === term) {
      found.length === 1 ? choose(found[0]) : list.current?.querySelector("button")?.focus();
    }
  };
  useEffect(() => { isEnterPending && enter(); }, [found]);
  const wrong = name && errors[name];
  return html`<div class="field pick">
    <label for=${id}>${label}</label>
    ${name && html`<input type="hidden" name=${name} value=${patient?.id ?? ""} />`}
    ${patient
      ? html`<div class="picked"><output id=${id}><bdi>${patientLabel(patient)}</bdi></output><button type="button" class="quiet"
        aria-label=${`Remove ${patientLabel(patient)}`} onClick=${() => choose(null)}>×</button></div>`
      : html`<input id=${id} ref=${input} type="search" autocomplete="off" placeholder="Name or MRN" value=${term}
        aria-describedby=${`${id}-status`} aria-invalid=${wrong ? "true" : null}
          onInput=${(event) => { setEnterPending(false); setTerm(event.target.value.trim()); }}
          onKeyDown=${(event) => event.key === "Enter" && (event.preventDefault(), enter())} />`}
    ${found && html`<ul class="found" ref=${list}>${found.map((one) => html`<li key=${one.id}><button type="button" onClick=${() =>
      choose(one)}><bdi>${patientLabel(one)}</bdi></button></li>`)}</ul>`}
    <small id=${`${id}-status`} role="status">${found ? (found.length === 0 ? "No patients match." : `${found.length} found`)
      : hint ?? ""}</small>
    ${wrong && html`<small class="wrong" role="alert">${wrong.join(" ")}</small>`}
  </div>`;
}
