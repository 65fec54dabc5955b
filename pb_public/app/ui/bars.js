// A bar chart with values, for data without an order in time.
import { html } from "../view.js";

/** @param {{title: string, rows: {label: string, value: number, text: string, tone?: string}[]}} props tone is a color property */
export function Bars({ title, rows }) {
  const most = Math.max(...rows.map((row) => row.value), 0) || 1;
  return html`<figure class="chart bars"><figcaption>${title}</figcaption>
    <dl>${rows.map((row) => html`<div key=${row.label}>
      <dt>${row.label}</dt>
      <dd><span class="bar" aria-hidden="true" style=${{ width: `${(row.value / most) * 100}%`, background: `var(${row.tone
        ?? "--series-1"})` }}></span><span class="value">${row.text}</span></dd>
    </div>`)}</dl>
  </figure>`;
}
