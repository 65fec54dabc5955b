// The dialog with all keyboard shortcuts of the current page.
import { actingKeys } from "../keys.js";
import { Dialog } from "./form.js";
import { html, useState } from "../view.js";

/** @type {Record<string, string>} */
const faces = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
const face = (/** @type {string} */ key) => faces[key] ?? (key.length === 1 ? key.toUpperCase() : key);

/** The keys of a shortcut in order. @param {{of: string}} props such as "g t" */
export const Keys = ({ of }) => html`${of.split(" ").map((key, i) => html`${i > 0 && " then "}<kbd key=${key}>${face(key)}</kbd>`)}`;

/** @param {{close: () => void}} props */
export function KeyList({ close }) {
  const [keys] = useState(actingKeys); // before this dialog opened over the page
  const always = [{ key: "Ctrl/⌘ K", label: "Find a patient, page or action" },
    { key: "Ctrl/⌘ Enter", label: "Save the current form" }];
  const here = keys.filter(({ key }) => !key.includes(" "));
  const ways = keys.filter(({ key }) => key.includes(" "));
  const groups = /** @type {[string, {key: string, label: string}[]][]} */ ([["This page", here], ["Go to", ways], ["Everywhere", always]]);
  return html`<${Dialog} wide title="Keyboard shortcuts" close=${close}>
    <p class="soft">Shortcuts are off while you type or a dialog is open. You can turn off single keys under Account.</p>
    <div class="keys">
      ${groups.map(([head, list]) => html`<section key=${head}><h3>${head}</h3>
        <dl>${list.map(({ key, label }) => html`<div key=${key}><dt>${list === always ? html`<kbd>${key}</kbd>`
          : html`<${Keys} of=${key} />`}</dt>
          <dd>${label}</dd></div>`)}</dl></section>`)}
    </div>
  </${Dialog}>`;
}
