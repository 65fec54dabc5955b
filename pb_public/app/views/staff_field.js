// The assignee field.
import { StaffPicker } from "../ui/staff_picker.js";
import { html } from "../view.js";

/** @param {{value?: string | null, nobody?: string, errors: Record<string, string[]>}} props nobody describes an empty choice */
export const StaffField = ({ value = null, nobody = "The primary provider", errors }) =>
  html`<${StaffPicker} value=${value} nobody=${nobody} errors=${errors} />`;
