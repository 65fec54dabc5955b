// The board's rows by level, and the shortcuts for the focused row.
import { can, canAcknowledge } from "../../permissions.js";
import { useKeys } from "../../keys.js";
import { go } from "../../router.js";
import { countOf } from "../../ui/format.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { classes, Fragment, html, useEffect, useRef, useState } from "../../view.js";
import { EscalateAlertDialog, SnoozeDialog } from "./dialogs.js";
import { applyToGroups } from "./bulk_actions.js";
import { GroupRow } from "./row.js";

/** @typedef {import("./held_list.js").Row} Row */
/** @typedef {{done: (ids: number[], deed: string) => void, undone: (ids: number[]) => void}} Callbacks */

const levels = /** @type {[string, string, string][]} */ ([["critical", "▲", "Critical"], ["warning", "◆", "Warning"],
  ["no_data", "○", "No data"], ["normal", "●", "Information"]]);
const heads = ["", "", "Patient", "Cause", "Last value", "Age", "First", "Trend", "Who", "State", ""];

/** @param {{rows: Row[], ofPatient: boolean, levels: Record<string, {groups: number, alerts: number}>, tab: string, deadlines: any,
 *   chosen: Set<string>, toggle: (keys: string[], on: boolean) => void,
 *   callbacks: Callbacks, busy: (busy: boolean) => void, write: () => void, reload: () => void}} props */
export function Board({ rows, ofPatient, levels: totals, tab, deadlines, chosen, toggle, callbacks, busy, write, reload }) {
  const table = useRef(/** @type {HTMLTableElement | null} */ (null));
  const [current, setCurrent] = useState("");
  const [open, setOpen] = useState("");
  const [dialog, setDialog] = useState(/** @type {{what: "escalate" | "snooze", row: Row} | null} */ (null));
  useEffect(() => busy(dialog !== null), [dialog !== null]);
  useClock();
  const at = rows.find((row) => row.key === current);
  const step = (/** @type {number} */ by) => {
    const next = rows[Math.min(Math.max(rows.findIndex((row) => row.key === current) + by, 0), rows.length - 1)];
    focusRow(table.current, next?.key);
  };
  const deed = (/** @type {Row} */ row, /** @type {import("./bulk_actions.js").Deed} */ what) => applyToGroups(what, [row],
    "", callbacks).catch(showError);
  const acts = rowShortcuts({ at, chosen, toggle, write, deed, setDialog: setDialog, unfold: (key) => setOpen(open === key ? "" : key) });
  useKeys({
    j: { label: "Next cause", act: () => step(1) }, k: { label: "Previous cause", act: () => step(-1) }, ArrowDown: () => step(1),
      ArrowUp: () => step(-1), ...(ofPatient ? { x: acts.x, o: acts.o, Enter: acts.Enter } : acts),
  });
  const all = rows.filter((row) => !row.gone).map(({ key }) => key);
  const some = all.filter((key) => chosen.has(key)).length;
  return html`<table class=${classes("causes", ofPatient && "of-patient")} ref=${table}
    onFocusIn=${(event) => setCurrent(event.target.closest("[data-key]")?.dataset.key ?? current)}>
    <caption class="unseen">Alerts by patient and cause, the most severe first</caption>
    <thead><tr>${heads.map((head, i) => html`<th key=${i} scope="col" class=${`c${i}`}>
      ${i === 0 ? html`<input type="checkbox" aria-label="Select all on this page"
      checked=${some > 0 && some === all.length} indeterminate=${some > 0 && some < all.length}
        onChange=${(event) => toggle(all, event.target.checked)} />`
      : head || html`<span class="unseen">${i === 1 ? "Level" : "Open"}</span>`}</th>`)}</tr></thead>
    ${levels.map(([level, sign, name]) => {
      const here = rows.filter((row) => row.placed === level);
      return here.length > 0 && html`<tbody key=${level}>
        <tr class=${`group ${level}`}><th colspan="11" scope="rowgroup"><span class="sign" aria-hidden="true">${sign}</span> ${name}
          <span class="soft">${countOf(Math.max(totals[level].groups, here.length), "cause")}, ${countOf(totals[level].alerts, "alert")}
            </span></th></tr>
        ${here.map((row) => html`<${Fragment} key=${row.key}><${GroupRow} row=${row} tab=${tab} deadlines=${deadlines}
          chosen=${chosen.has(row.key)} first=${(at ?? rows[0])?.key === row.key}
          open=${open === row.key} unfold=${() => setOpen(open === row.key ? "" : row.key)} choose=${(on) => toggle([row.key], on)}
            changed=${reload} /></${Fragment}>`)}
      </tbody>`;
    })}
  </table>
  ${dialog?.what === "escalate" && dialog.row.latest && html`<${EscalateAlertDialog} alert=${dialog.row.latest}
    close=${() => setDialog(null)}
    done=${reload} />`}
  ${dialog?.what === "snooze" && html`<${SnoozeDialog} patient=${dialog.row.patient_id} name=${dialog.row.patient_name}
    kind=${dialog.row.type} close=${() => setDialog(null)} done=${reload} />`}`;
}

/** Shortcuts for the focused row. A critical alert cannot be acknowledged by one key: the note opens first.
 *  @param {{at: Row | undefined, chosen: Set<string>, toggle: (keys: string[], on: boolean) => void, write: () => void,
 *  deed: (row: Row, what: any) => void, setDialog: (what: any) => void,
 *  unfold: (key: string) => void}} hands @returns {Record<string, any>} */
function rowShortcuts({ at, chosen, toggle, write, deed, setDialog, unfold }) {
  const one = at && !at.gone ? at : undefined;
  const writeNote = () => {
    if (one && chosen.size === 0) {
      toggle([one.key], true);
    }
    write();
  };
  return {
    x: { label: "Select the cause", act: () => one && toggle([one.key], !chosen.has(one.key)) },
    a: { label: "Acknowledge", act: () => (one && chosen.size === 0 && one.critical_count === 0 && canAcknowledge({ level: one.level })
      ? deed(one, "acknowledge") : writeNote()) },
    n: { label: "Write the note", act: writeNote },
    o: { label: "Show readings", act: () => at && unfold(at.key) }, Enter: () => at && unfold(at.key),
    p: { label: "Open the patient", act: () => at && go("patient", { id: at.patient_id, tab: "alerts" }) },
    ...(can("resolve") ? { v: { label: "Resolve", act: () => (one && chosen.size === 0 && one.critical_count === 0 ? deed(one, "resolve")
      : writeNote()) } } : {}),
    ...(can("escalate") ? { e: { label: "Escalate", act: () => one?.latest && setDialog({ what: "escalate", row: one }) } } : {}),
    ...(can("snooze") ? { s: { label: "Snooze", act: () => one && setDialog({ what: "snooze", row: one }) } } : {}),
  };
}

/** @param {HTMLElement | null} table @param {string | undefined} key */
function focusRow(table, key) {
  const row = /** @type {HTMLElement | undefined} */ ([...(table?.querySelectorAll("tr[data-key]") ?? [])]
    .find((one) => /** @type {HTMLElement} */ (one).dataset.key === key));
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

const showError = (/** @type {unknown} */ error) => toast(asProblem(error).message, "problem");

/** Updates the displayed ages each half minute. */
function useClock() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
}
