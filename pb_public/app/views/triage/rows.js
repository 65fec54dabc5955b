// The rows of the triage list in groups by urgency, with quick actions on the current row.
import { can } from "../../permissions.js";
import { classes, html, useEffect, useRef, useState } from "../../view.js";
import { RowContent } from "./row_content.js";
import { useSlide } from "./row_animation.js";
import { groupOf, groups, rowLabel } from "./labels.js";

/** @typedef {import("./order.js").Row} Row */
/** @typedef {{acknowledge: (row: Row) => void, escalate: (row: Row) => void, review: (row: Row) => void, snooze: (row: Row) => void,
 *  open: (row: Row) => void}} Acts */

/** The row element of a patient. @param {string} id */
export const rowOf = (id) => /** @type {HTMLElement | null} */ ([...document.querySelectorAll(".triage > li")].find((item) =>
  /** @type {HTMLElement} */ (item).dataset.id === id) ?? null);

/**
 * @param {{rows: Row[], grouped: boolean, counts: Record<string, number> | null, changed: Set<string>, current: string, opened: string,
 *  pick: (row: Row) => void,
 *   acts: Acts, hold: (why: "pointer" | "focus", on: boolean) => void, busy: ReadonlySet<string>}} props
 */
export function Rows({ rows, grouped, counts, changed, current, opened, pick, acts, hold, busy }) {
  const list = useRef(/** @type {HTMLOListElement | null} */ (null));
  const [hovered, setHovered] = useState("");
  useSlide(list, rows);
  const drawn = useRenderedRows();
  let group = "";
  const entered = rows.some((row) => row.patient_id === current) ? current : rows[0]?.patient_id; // one Tab stop; J and K move between rows
  return html`<ol class="triage" ref=${list} aria-label="Patients by urgency" onPointerEnter=${() => hold("pointer", true)}
    onPointerLeave=${() => { hold("pointer", false); setHovered(""); }} onFocusIn=${() => hold("focus", true)}
      onFocusOut=${() => hold("focus", false)}>
    ${rows.flatMap((row) => {
      const id = row.patient_id;
      const head = grouped && groupOf(row) !== group ? groupOf(row) : "";
      group = groupOf(row);
      const line = html`<li key=${id} data-id=${id} tabindex=${id === entered ? "0" : "-1"} aria-current=${id === opened ? "true" : null}
        aria-label=${drawn(row).label}
          class=${classes("row", row.risk_level, changed.has(id) && "moved", id === opened && "opened", busy.has(id) && "busy")}
          onFocus=${() => pick(row)} onPointerEnter=${() => setHovered(id)}
            onClick=${(event) => event.target.closest("button, a") || acts.open(row)}>
          ${drawn(row).drawn}
          ${(hovered === id || (hovered === "" && current === id)) && html`<${Quick} row=${row} acts=${acts} narrow=${opened !== ""} />`}
        </li>`;
      return head ? [html`<${Group} key=${`group of ${id}`} of=${head} count=${counts?.[head]} />`, line] : [line];
    })}
  </ol>`;
}

/** @param {{of: string, count: number | undefined}} props */
function Group({ of, count }) {
  const [, level, words] = groups.find(([key]) => key === of) ?? groups[groups.length - 1];
  const shape = { critical: "▲", warning: "◆", normal: "●", no_data: "○" }[level];
  return html`<li class=${classes("group", level)} data-id=${`group ${of}`}><span
    aria-hidden="true">${shape}</span> <b>${words}</b> ${count !== undefined && html`<span class="number">${count}</span>`}</li>`;
}

/** Quick actions, shown over the last column. @param {{row: Row, acts: Acts, narrow: boolean}} props */
const Quick = ({ row, acts, narrow }) => html`<div class="quick no-print" data-narrow=${narrow ? "true" : null}>
  ${row.unacknowledged_alerts > 0 && html`<button aria-label=${`Acknowledge: ${row.patient_name}`} tabindex="-1"
    onClick=${() => acts.acknowledge(row)}>Acknowledge <kbd aria-hidden="true">A</kbd></button>`}
  ${can("review") && (!narrow || row.unacknowledged_alerts === 0)
    && html`<button aria-label=${`Reviewed: ${row.patient_name}`} tabindex="-1"
      onClick=${() => acts.review(row)}>Reviewed <kbd aria-hidden="true">R</kbd></button>`}
  ${!narrow && can("escalate") && html`<button aria-label=${`Escalate ${row.patient_name}`} tabindex="-1"
    onClick=${() => acts.escalate(row)}>Escalate <kbd aria-hidden="true">E</kbd></button>`}
</div>`;

/** Caches rendered rows: at twenty changes a second, unchanged rows must not be rendered. Ages update each half minute. */
function useRenderedRows() {
  const cache = useRef(/** @type {WeakMap<Row, {drawn: any, label: string}>} */ (new WeakMap()));
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => { cache.current = new WeakMap(); tick((n) => n + 1); }, 30_000);
    return () => clearInterval(timer);
  }, []);
  return (/** @type {Row} */ row) => {
    const line = cache.current.get(row) ?? { drawn: html`<${RowContent} row=${row} />`, label: rowLabel(row) };
    cache.current.set(row, line);
    return line;
  };
}
