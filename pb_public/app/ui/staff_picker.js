// Chooses active staff members by name or role.
import { getAll } from "../api.js";
import { roleNames } from "../permissions.js";
import { Combo } from "./combo.js";
import { html, useEffect, useRef, useState } from "../view.js";

/** @typedef {{id: number, name: string, email: string, role: string}} Colleague */

/** Roles that can take an escalation. */
export const clinicians = ["provider", "nurse", "clinical_manager", "admin"];

/** @param {{by: "email" | "id", roles: string[]}} which @returns {(one: Colleague) => import("./combo.js").Option} */
const optionOf = ({ by }) => (one) => ({ value: String(one[by]), text: one.name, more: roleNames[one.role] ?? one.role });

/**
 * Chooses a staff member, or several with `many`. The form value is the email, as `assigned_to` requires, or with by="id" the number. roles
 * limits the choice. value is the initial one, by email or number. emptyLabel describes an empty choice.
 * @param {{label?: string, name?: string, value?: string | number | null, by?: "email" | "id", roles?: string[], emptyLabel?: string,
 * hint?: string, without?: (string | number)[],   many?: boolean, chosen?: (choice: any) => void, errors?: Record<string, string[]>,
 * autofocus?: boolean}} props
 */
export function StaffPicker({
  label = "Assign to", name = "assigned_to", value = null, by = "email", roles = clinicians, emptyLabel = "", hint,
    without = [], many, chosen,
  errors, autofocus,
}) {
  const list = useRef(/** @type {Promise<Colleague[]> | null} */ (null));
  const staff = () => (list.current ??= getAll("users/staff/"));
  const [initial, setInitial] = useState(/** @type {import("./combo.js").Option | null | undefined} */ (
    value === null || value === "" ? null
    : undefined));
  useEffect(() => {
    if (initial === undefined) { // the list has the name of the initial choice
      const plain = { value: String(value), text: String(value) };
      const mine = (/** @type {Colleague} */ one) => String(one[by]) === String(value);
      staff().then((found) => setInitial(found.filter(mine).map(optionOf({ by, roles }))[0] ?? plain), () => setInitial(plain));
    }
  }, []);
  const find = async (/** @type {string} */ term) => {
    const words = term.toLowerCase().split(/\s+/).filter(Boolean);
    const named = (/** @type {Colleague} */ one) => `${one.name} ${one.email} ${roleNames[one.role] ?? ""}`.toLowerCase();
    const fits = (/** @type {Colleague} */ one) => words.every((word) => named(one).includes(word));
    const may = (/** @type {Colleague} */ one) => roles.includes(one.role) && !without.map(String).includes(String(one[by]));
    return (await staff()).filter((one) => may(one) && fits(one)).map(optionOf({ by, roles }));
  };
  const empty = emptyLabel && `Leave blank: ${emptyLabel.charAt(0).toLowerCase()}${emptyLabel.slice(1)}`;
  return initial === undefined ? html`<div class="field combo"><label>${label}</label><div class="combo-box"></div></div>`
    : html`<${Combo} label=${label} name=${name} find=${find} value=${initial} many=${many} eager chosen=${chosen} errors=${errors}
      autofocus=${autofocus} placeholder="Name or role" hint=${hint ?? empty} nothing="No one matches." />`;
}
