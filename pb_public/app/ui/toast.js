// Short words on what just happened, read out by screen readers.
import { classes, html, signal } from "../view.js";

const shown = signal(/** @type {{id: number, text: string, kind: string}[]} */ ([]));
let last = 0;

/** @param {string} text @param {"done"|"problem"} kind */
export function toast(text, kind = "done") {
  const id = ++last;
  shown.value = [...shown.value, { id, text, kind }];
  setTimeout(() => dismiss(id), kind === "problem" ? 12_000 : 5_000);
}

/** @param {number} id */
function dismiss(id) {
  shown.value = shown.value.filter((one) => one.id !== id);
}

export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
  ${shown.value.map(({ id, text, kind }) => html`<div key=${id} class=${classes("toast", kind)}>${text}
    <button class="quiet" aria-label="Dismiss" onClick=${() => dismiss(id)}>×</button></div>`)}
</div>`;
