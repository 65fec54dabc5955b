// The assignee field.
import { StaffPicker } from "../ui/staff_picker.js";
import { html } from "../view.js";

/** @param {{value?: string | null, emptyLabel?: string, errors: Record<string, string[]>}} props emptyLabel describes an empty choice */
export const StaffField = ({ value = null, emptyLabel = "The primary provider", errors }) =>
  html`<${StaffPicker} value=${value} emptyLabel=${emptyLabel} errors=${errors} />`;
