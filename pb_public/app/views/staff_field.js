// Whom to assign to: a choice for those who may see the staff list, else an email.
import { all } from "../api.js";
import { can } from "../can.js";
import { Field } from "../ui/form.js";
import { words } from "../ui/format.js";
import { useLoad } from "../ui/states.js";
import { html } from "../view.js";

const clinicians = ["provider", "nurse", "clinical_manager", "admin"];

/** @param {{value?: string | null, nobody?: string, errors: Record<string, string[]>}} props nobody says what an empty choice means */
export function StaffField({ value = null, nobody = "The primary provider", errors }) {
  const staff = useLoad(() => (can("readUsers") ? all("users/", { is_active: true }) : Promise.resolve([])), []);
  const options = (staff.data ?? []).filter((u) => clinicians.includes(u.role)).map((u) => /** @type {[string, string]} */ ([u.email, `${u.first_name} ${u.last_name}, ${words(u.role).toLowerCase()}`]));
  return options.length > 0 ? html`<${Field} label="Assign to" name="assigned_to" kind="select" value=${value ?? ""} options=${[["", nobody], ...options]} errors=${errors} />`
    : html`<${Field} label="Assign to (email)" name="assigned_to" kind="email" value=${value} hint=${`Empty: ${nobody.toLowerCase()}`} errors=${errors} />`;
}
