// Translates the server's field errors and finds the form field of each.
import { sayProblem } from "../language.js";

/** Error texts of the server, and the texts shown instead. @type {[RegExp, string][]} */
const replacements = [
  [/^This field (is required|may not be (null|blank))\.?$/i, "Fill this in."],
  [/^This list may not be empty\.?$/i, "Enter at least one."],
  [/^(Not a valid string|A valid (number|integer) is required)\.?$/i, "Enter a valid number or text."],
];

/** @param {string} message */
export const plainMessage = (message) => sayProblem(replacements.find(([like]) => like.test(message))?.[1] ?? message);

/** The errors of a field and of its parts: `icd10_codes` includes those of `icd10_codes.1`, with the position in the list.
 *  @param {Record<string, string[] | undefined>} errors @param {string} name @returns {string[] | null} */
export function errorsOf(errors, name) {
  const found = Object.entries(errors).flatMap(([field, messages]) => {
    if (!messages || (field !== name && !field.startsWith(`${name}.`))) {
      return [];
    }
    const within = field.slice(name.length + 1).split(".").filter(Boolean)
      .map((part) => (/^\d+$/.test(part) ? `No. ${Number(part) + 1}` : part.replaceAll("_", " ")));
    return messages.map((message) => (within.length > 0 ? `${within.join(", ")}: ${plainMessage(message)}` : plainMessage(message)));
  });
  return found.length > 0 ? found : null;
}

/** @typedef {{field: string, label: string, control: HTMLElement | null, text: string, shown: boolean}} Wrong shown: it
 *  appears at its field */

/** The form control of a server field: its own, that of a parent field, or that of the last part of its name.
 *  @param {HTMLFormElement} form @param {string} field */
function controlOf(form, field) {
  const parts = field.split(".");
  const ways = [...parts.map((_, i) => parts.slice(0, parts.length - i).join(".")), ...parts.filter((part) => !/^\d+$/.test(part))
    .reverse()];
  for (const way of ways) {
    const name = CSS.escape(way);
    const control = form.querySelector(`[data-field="${name}"], [name="${name}"]:not([type=hidden])`);
    if (control) {
      return /** @type {HTMLElement} */ (control);
    }
  }
  return null;
}

/** Every error with its control, in the order of the form; errors without a control come last. @param {HTMLFormElement} form
 *  @param {Record<string, string[]>} fields @returns {Wrong[]} */
export function locateErrors(form, fields) {
  const list = Object.entries(fields).filter(([field]) => field !== "non_field_errors").map(([field, messages]) => {
    const control = controlOf(form, field);
    const box = control?.closest(".field");
    const own = field.split(".").filter((part) => !/^\d+$/.test(part)).join(", ").replaceAll("_", " ");
    const label = box?.querySelector("label, legend")?.textContent?.trim() ?? own.charAt(0).toUpperCase() + own.slice(1);
    return { field, label, control, text: messages.map(plainMessage).join(" "), shown: Boolean(box?.querySelector(".wrong")) };
  });
  return list.sort(({ control: a }, { control: b }) => {
    if (!a || !b) {
      return a ? -1 : b ? 1 : 0;
    }
    return a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;
  });
}
