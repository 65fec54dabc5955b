// The service's settings, which its environment sets: values, defaults and sources, to read only. Secrets are never sent.
import { getAll } from "../../api.js";
import { Field } from "../../ui/form.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Setting"]} Setting */

export function Settings() {
  const from = useLoad(() => getAll("settings/", {}, 500), []);
  const [words, setWords] = useState("");
  const [isChanged, setChanged] = useState(false);
  const matches = (/** @type {Setting} */ one) => (!isChanged || one.source !== "default")
    && words.toLowerCase().split(/\s+/).every((word) => `${one.name} ${one.meaning}`.toLowerCase().includes(word));
  return html`<div class="filters" role="search" aria-label="Filter the settings">
      <${Field} label="Search" name="words" kind="search" onInput=${(/** @type {any} */ event) => setWords(event.target.value.trim())} />
      <${Field} label="Only changed" name="changed" kind="checkbox"
        onChange=${(/** @type {any} */ event) => setChanged(event.target.checked)} />
    </div>
    <p class="soft">Read-only: an operator sets these in the service’s environment and restarts it.</p>
    <${Loaded} from=${from}>${(/** @type {Setting[]} */ all) => html`<${Table} caption="Settings" zone=${false} columns=${columns}
      rows=${all.filter(matches)} keyOf=${(/** @type {Setting} */ one) => one.name} />`}</${Loaded}>`;
}

/** @param {string} text */
const written = (text) => (text === "" ? "–" : html`<code class="hash">${text}</code>`);

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "name", head: "Setting", cell: (one) => html`<strong>${one.name}</strong><span class="two">${one.meaning}</span>` },
  { name: "value", head: "Value", cell: (one) => (one.secret ? (one.source === "default" ? "Not set" : "Set, hidden")
    : html`${written(one.value)}${one.source !== "default" && html`<span class="two">Default: ${written(one.default)}</span>`}`) },
  { name: "source", head: "Source", cell: (one) => ({ default: "Default", environment: html`<strong>Environment</strong>`,
    file: html`<strong>File</strong>` })[one.source] },
];
