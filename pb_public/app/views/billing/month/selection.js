// The shown and the selected entries: all ready entries are selected except those that the user deselects.
import { useState } from "../../../view.js";
import { mainReason } from "../blocking_reasons.js";

/** @typedef {import("../blocking_reasons.js").Row} Row */

const perPage = 100;

/** The entries of a stage that match the filters, and the current page. @param {Row[]} rows @param {any} query of the address */
export function shownOf(rows, query) {
  const narrowed = rows.filter((row) => (!query.code || row.cpt_code === query.code) && (!query.payer || row.payer === query.payer));
  const ready = narrowed.filter((row) => row.ready);
  const held = narrowed.filter((row) => !row.ready);
  const blocked = held.filter((row) => !query.why || mainReason(row) === query.why);
  const shown = { ready, blocked }[/** @type {string} */ (query.show)] ?? narrowed;
  const page = Math.min(query.page, Math.max(1, Math.ceil(shown.length / perPage)));
  return { narrowed, ready, held, shown, page, perPage, lines: shown.slice((page - 1) * perPage, page * perPage) };
}

/** The selected entries among those that match: an entry that is not listed is never reviewed.
 *  @param {Row[]} shown @param {Row[]} lines of the page */
export function useChoice(shown, lines) {
  const [deselected, setDeselected] = useState(/** @type {Set<string>} */ (new Set()));
  const toggle = (/** @type {Row} */ row) => {
    const next = new Set(deselected);
    next.delete(row.entry_id) || next.add(row.entry_id);
    setDeselected(next);
  };
  const toggleAll = () => {
    const seen = lines.filter((row) => row.ready);
    const next = new Set(deselected);
    const all = seen.every((row) => !next.has(row.entry_id));
    seen.forEach((row) => (all ? next.add(row.entry_id) : next.delete(row.entry_id)));
    setDeselected(next);
  };
  return { chosen: shown.filter((row) => row.ready && !deselected.has(row.entry_id)), toggle, toggleAll };
}
