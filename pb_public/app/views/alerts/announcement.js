// What is announced about unanswered critical alerts, in the banner and inside dialogs.
import { answering, isSame, unanswered } from "../../criticals.js";
import { html, useState } from "../../view.js";
import { causeOf, valueOf } from "./labels.js";

/** @typedef {import("../../criticals.js").Group} Group */

/** "212/126 mmHg", with a mark if it is not confirmed; the cause if nothing was measured. @param {Group} cause */
export function valueText(cause) {
  const value = valueOf(cause.latest);
  return value ? `${value.held ? "not confirmed, " : ""}${value.value} ${value.unit}`.trim() : causeOf(cause);
}

const most = 3; // named in one announcement

/** @param {Group[]} causes @param {string} [how] how to answer */
export const announcement = (causes, how = "Press the period key to answer.") => (causes.length === 0 ? ""
  : `Unanswered critical: ${causes.slice(0, most).map((one) => `${one.patient_name}, ${valueText(one)}`).join("; ")}${
    causes.length > most ? ` and ${causes.length - most} more` : ""}. ${how}`);

/** Announces criticals that arrive while a dialog is open, which hides the rest of the page from screen readers. */
export function NewsInDialog() {
  const [before] = useState(unanswered.peek());
  const other = unanswered.value.filter((one) => !(answering.value && isSame(one, answering.value))
    && !before.some((was) => isSame(was, one) && was.critical_count >= one.critical_count));
  return html`<div role="alert">${other.length > 0 && html`<p class="notice problem"><span aria-hidden="true">▲ </span>
    ${announcement(other, "Close this to answer.")}</p>`}</div>`;
}
