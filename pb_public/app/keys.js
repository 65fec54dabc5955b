// Single-key shortcuts. None acts while the user types, while a dialog is open, or with Alt, Ctrl or Cmd, which belong to the browser and
// the system. A user can turn them off in the account. Source: WCAG 2.2, 2.1.4.
import { display } from "./session.js";
import { useEffect, useRef } from "./view.js";

/** @typedef {(event: KeyboardEvent) => void} Act */
/** isFirst: before those of newer callers. @typedef {{keys: {current: Record<string, Act | {label: string, act: Act}>},
 *  isActive: () => boolean, isFirst: boolean}} Binding */

/** Newest first. @type {Binding[]} */
const bindings = [];
/** In the order in which they act. */
const activeBindings = () => bindings.filter((one) => one.isActive()).sort((a, b) => Number(b.isFirst) - Number(a.isFirst));

/** The first key of a pair such as "g t", until the time for the second one is over. */
let pendingKey = { key: "", at: 0 };
const sequenceTimeout = 1_500; // milliseconds between the two

const typingSelector = `input:not([type=checkbox], [type=radio], [type=button], [type=submit], [type=range]), textarea, select,
  [contenteditable],
  [role=combobox], [role=listbox], [role=menu]`;

/** Whether keys are typed into a field. @param {EventTarget | null} target */
export const isTyping = (target) => target instanceof Element && target.closest(typingSelector) !== null;
/** Whether a dialog is open. */
export const isDialogOpen = () => document.querySelector("dialog[open], [aria-modal=true]") !== null;

/** The key's name: a letter without Shift, a sign, or a name such as "Enter"; "" for none. @param {KeyboardEvent} event */
function keyName({ key, shiftKey }) {
  const letter = key.length === 1 && key.toLowerCase() !== key.toUpperCase();
  return key.length > 1 ? key : letter && shiftKey ? "" : key.toLowerCase();
}

/**
 * Shortcuts while the caller is shown: `useKeys({ a: acknowledge, j: { label: "Next patient", act: next }, "g t": openTriage })`. A key is
 * one letter or sign, a name such as "Enter", "Escape" or "ArrowDown", or two letters in sequence. Those with a label appear in the list
 * that `?` opens. If two callers bind a key, the newest wins, or the one with `isFirst`. With `active: false` none of them acts.
 * @param {Binding["keys"]["current"]} keys @param {{active?: boolean, isFirst?: boolean}} [options]
 */
export function useKeys(keys, options = {}) {
  const latest = useRef(keys);
  const isActive = useRef(true);
  latest.current = keys;
  isActive.current = options.active ?? true;
  useEffect(() => {
    const binding = { keys: latest, isActive: () => isActive.current, isFirst: options.isFirst ?? false };
    bindings.unshift(binding);
    return () => { bindings.splice(bindings.indexOf(binding), 1); };
  }, []);
}

/** The active shortcuts that have a label. @returns {{key: string, label: string, act: () => void}[]} */
export function actingKeys() {
  const list = new Map();
  for (const binding of activeBindings()) {
    for (const [key, what] of Object.entries(binding.keys.current)) {
      if (typeof what !== "function" && !list.has(key)) {
        list.set(key, { key, label: what.label, act: () => what.act(new KeyboardEvent("keydown", { key })) });
      }
    }
  }
  return [...list.values()];
}

/** @param {string} key @returns {Act | null} */
function actionFor(key) {
  const found = activeBindings().find((binding) => key in binding.keys.current)?.keys.current[key];
  return found === undefined ? null : typeof found === "function" ? found : found.act;
}

/** Whether a pair begins with the key. @param {string} key */
const startsSequence = (key) => activeBindings().some((binding) => Object.keys(binding.keys.current)
  .some((pair) => pair.startsWith(`${key} `)));

/** @param {KeyboardEvent} event */
function onKeyDown(event) {
  const first = performance.now() - pendingKey.at < sequenceTimeout ? pendingKey.key : "";
  pendingKey = { key: "", at: 0 };
  const others = event.altKey || event.ctrlKey || event.metaKey;
  if (event.defaultPrevented || event.isComposing || others || isTyping(event.target) || isDialogOpen()) {
    return;
  }
  const key = keyName(event);
  const letter = key.length === 1;
  const pressed = (key === "Enter" || key === " ") && event.target instanceof Element && event.target.closest("button, a, summary");
  if (key === "" || (letter && !display.peek().single_keys) || pressed) {
    return;
  }
  if (event.repeat && !["j", "k", "ArrowDown", "ArrowUp"].includes(key)) {
    return; // a held key acts once
  }
  if (!first && letter && startsSequence(key)) {
    pendingKey = { key, at: performance.now() };
    return;
  }
  const act = actionFor(first ? `${first} ${key}` : key); // an unknown second key of a pair does nothing
  if (act) {
    event.preventDefault();
    act(event);
  }
}

addEventListener("keydown", onKeyDown);
