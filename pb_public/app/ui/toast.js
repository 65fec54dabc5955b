// Toasts: short messages, also for screen readers. Those that can be undone offer Undo for ten seconds.
import { classes, html, signal, useEffect, useRef } from "../view.js";
import { say, sayProblem } from "../language.js";

/** @typedef {{name: string, act: () => Promise<any>}} Offer a next action with its label */
/** @typedef {{id: number, text: any, kind: string, undo?: () => any, offer?: Offer, seconds: number}} Message */

const shown = signal(/** @type {Message[]} */ ([]));
let last = 0;

/**
 * Shows a message. With undo it has an Undo button for ten seconds; if the promise of undo is rejected, the error is shown. With offer it
 * has a button for a likely next action, shown as long as a problem.
 * @param {any} text @param {"done"|"problem"} [kind] @param {{undo?: () => any, offer?: Offer}} [more]
 * @returns {() => void} removes the message
 */
export function toast(text, kind = "done", { undo, offer } = {}) {
  const id = ++last;
  const seconds = undo ? 10 : kind === "problem" || offer ? 12 : 5;
  shown.value = [...shown.value.slice(-3), { id, text, kind, undo, offer, seconds }];
  return () => dismiss(id);
}

/** @param {number} id */
function dismiss(id) {
  shown.value = shown.value.filter((one) => one.id !== id);
}

/** Its time pauses while the pointer or the focus is on it. @param {{message: Message}} props */
function Toast({ message }) {
  const { id, text, kind, undo, offer, seconds } = message;
  const held = useRef(false);
  const left = useRef(seconds * 1000);
  useEffect(() => {
    const step = 250;
    const timer = setInterval(() => {
      left.current -= held.current ? 0 : step;
      if (left.current <= 0) {
        dismiss(id);
      }
    }, step);
    return () => clearInterval(timer);
  }, []);
  const press = async (/** @type {(() => any) | undefined} */ act, /** @type {string} */ otherwise) => {
    dismiss(id);
    try {
      await act?.();
    } catch (error) {
      toast(error instanceof Error ? error.message : otherwise, "problem");
    }
  };
  const hold = () => { held.current = true; };
  const free = () => { held.current = false; };
  return html`<div class=${classes("toast", kind)} onPointerEnter=${hold} onPointerLeave=${free} onFocusIn=${hold} onFocusOut=${free}>
    <span>${kind === "problem" ? sayProblem(text) : say(text)}</span>
    ${offer && html`<button class="undo" onClick=${() => press(offer.act, "The action failed.")}>${offer.name}</button>`}
    ${undo && html`<button class="undo"
      onClick=${() => press(undo, "Undo failed.")}>Undo</button><span class="ring" aria-hidden="true"
      style=${{ "--lasts": `${seconds}s` }}></span>`}
    <button class="quiet" aria-label=${say("Dismiss")} onClick=${() => dismiss(id)}>×</button></div>`;
}

export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
  ${shown.value.map((message) => html`<${Toast} key=${message.id} message=${message} />`)}</div>`;
