// Chooses a patient by name or MRN, in a form or a filter.
import { get } from "../api.js";
import { Combo } from "./combo.js";
import { useLoad } from "./states.js";
import { html, useRef } from "../view.js";

/** @typedef {{id: string, first_name: string, last_name: string, mrn: string, date_of_birth?: string}} Patient */

/** @param {Patient} p */
const optionOf = (p) => ({ value: p.id, text: `${p.last_name}, ${p.first_name} · ${p.mrn}` });

/**
 * first is the id of the initial patient. chosen receives a patient, or null when the choice is cleared. With a name the id is a value of
 * the surrounding form.
 * @param {{label: string, chosen?: (patient: Patient | null) => void, first?: string, name?: string, hint?: string,
 *   errors?: Record<string, string[]>}} props
 */
export function PatientPicker({ label, chosen, first = "", name, hint, errors }) {
  const found = useRef(/** @type {Patient[]} */ ([]));
  const initial = useLoad((signal) => (first ? get(`patients/${first}/`, {}, signal) : Promise.resolve(null)), []);
  const find = async (/** @type {string} */ search, /** @type {AbortSignal} */ signal) => {
    found.current = (await get("patients/", { search, page_size: 8 }, signal)).results;
    return found.current.map(optionOf);
  };
  return html`<${Combo} key=${initial.loading} label=${label} name=${name} find=${find} value=${initial.data && optionOf(initial.data)}
    careful placeholder="Name or MRN" hint=${initial.problem?.message ?? hint} nothing="No patients match." errors=${errors}
    chosen=${(/** @type {any} */ one) => chosen?.(found.current.find(({ id }) => id === one?.value) ?? null)} />`;
}
