// All keys that act where one is now.
import { actingKeys } from "../keys.js";
import { Dialog } from "./form.js";
import { html, useState } from "../view.js";

/** @type {Record<string, string>} */
const faces = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
const face = (/** @type {string} */ key) => faces[key] ?? (key.length === 1 ? key.toUpperCase() : key);

/** Keys as they are pressed, one after the other. @param {{of: string}} props such as "g t" */
export const Keys = ({ of }) => html`${of.split(" ").map((key, i) => html`${i > 0 && " then "}<kbd key=${key}>${face(key)}</kbd>`)}`;

/** @param {{close: () => void}} props */
export function KeyList({ close }) {
  const [keys] = useState(actingKeys); // as they were before this dialog stood over them
  const always = [{ key: "Ctrl/⌘ K", does: "Find a patient, a page, an action" },
    { key: "Ctrl/⌘ Enter", does: "Save the form that is typed in" }];
  const here = keys.filter(({ key }) => !key.includes(" "));
  const ways = keys.filter(({ key }) => key.includes(" "));
  const groups = /** @type {[string, {key: string, does: string}[]][]} */ ([["Here", here], ["Go to", ways], ["Everywhere", always]]);
  return html`<${Dialog} wide title="Keys" close=${close}>
    <p class="soft">None of them acts while you type or a dialog is open. Single keys can be switched off under Account.</p>
    <div class="keys">
      ${groups.map(([head, list]) => html`<section key=${head}><h3>${head}</h3>
        <dl>${list.map(({ key, does }) => html`<div key=${key}><dt>${list === always ? html`<kbd>${key}</kbd>`
          : html`<${Keys} of=${key} />`}</dt>
          <dd>${does}</dd></div>`)}</dl></section>`)}
    </div>
  </${Dialog}>`;
}
