// The bar for selected alerts: one note for all charts, and the actions.
import { can, canAcknowledge } from "../../permissions.js";
import { useDraft } from "../../drafts.js";
import { countOf } from "../../ui/format.js";
import { useHeight } from "../../ui/height.js";
import { NoteTexts } from "../../ui/note_field.js";
import { asProblem } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { html, useEffect, useRef, useState } from "../../view.js";
import { EscalateAlertDialog, SnoozeDialog } from "./dialogs.js";
import { applyToGroups, isTakeable } from "./bulk_actions.js";
import { typeName } from "./labels.js";

/** @typedef {import("./held_list.js").Row} Row */

/**
 * @param {{rows: Row[], note: {current: HTMLTextAreaElement | null}, callbacks: import("./board.js").Callbacks, clear: () => void, busy:
 * (busy: boolean) => void, reload: () => void}} props
 */
export function Bar({ rows, note, callbacks, clear, busy, reload }) {
  const [about] = useState(() => [...new Set(rows.map(({ patient_id }) => patient_id))].sort().join(" "));
  const [draft, setDraft] = useDraft(`alerts.note ${about}`); // a draft applies only to the same patients
  const [isBusy, setBusy] = useState(false);
  const [dialog, setDialog] = useState(/** @type {"snooze" | "escalate" | ""} */ (""));
  const alerts = rows.reduce((sum, row) => sum + row.alert_ids.length, 0);
  const critical = rows.reduce((sum, row) => sum + row.critical_count, 0);
  const worst = rows.filter((row) => row.critical_count > 0);
  const charts = new Set(rows.map(({ patient_id }) => patient_id)).size;
  const mine = rows.filter((row) => row.level !== "critical" || row.critical_count < row.count || canAcknowledge({ level: "critical" }));
  const press = async (/** @type {import("./bulk_actions.js").Deed} */ deed) => {
    if (isBusy) {
      return;
    }
    setBusy(true);
    try {
      if (await applyToGroups(deed, rows, note.current?.value ?? draft, callbacks) > 0) {
        setDraft("");
      }
    } catch (error) {
      toast(asProblem(error).message, "problem");
    } finally {
      setBusy(false);
    }
  };
  useSend((isTaking) => mine.length > 0 && void press(isTaking ? "take" : "acknowledge"));
  useEffect(() => busy(dialog !== ""), [dialog]);
  const escape = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      clear();
    }
  };
  const bar = useHeight("--bulk");
  const [one] = rows;
  return html`<section class="bulk no-print" ref=${bar} aria-label="Selected alerts" onKeyDown=${escape}>
    <div class="bulk-summary">
      <strong>${countOf(rows.length, "cause")}, ${countOf(alerts, "alert")}</strong>
      ${charts > 1 && html`<span class="badge warning"><span aria-hidden="true">◆</span> One note for ${charts} charts</span>`}
      ${critical > 0 && html`<span class="badge critical"><span aria-hidden="true">▲</span> ${critical} critical: <span>
        ${worst.slice(0, 2).map(({ patient_name, type }, i) => html`${i > 0 && "; "}<bdi>${patient_name}
          </bdi>, ${typeName(type)}`)}${worst.length > 2 && ` and ${worst.length - 2} more`}</span></span>`}
      ${critical > 0 && !canAcknowledge({ level: "critical" }) && html`<span>Critical alerts require a nurse or provider.</span>`}
      <span class="grow"></span>${draft && html`<small>Draft saved</small>`}
      <button class="quiet" onClick=${clear}>Clear <kbd>Esc</kbd></button>
    </div>
    <div class="bulk-acts">
      <textarea rows="1" aria-label=${charts > 1 ? `Note for ${charts} charts` : "Note"} placeholder="Findings and actions"
        maxlength="4000" ref=${note} value=${draft} onInput=${(event) => setDraft(event.target.value)}></textarea>
      <${NoteTexts} context="alert" into=${() => note.current} />
      ${mine.length > 0 && html`<button class="main" disabled=${isBusy}
        onClick=${() => press("acknowledge")}>Acknowledge ${alerts} <kbd>Ctrl ↵</kbd></button>`}
      ${mine.some(({ escalation }) => isTakeable(escalation)) && html`<button disabled=${isBusy} title="Ctrl or ⌘ with Shift and Enter"
        onClick=${() => press("take")}>Acknowledge and take</button>`}
      ${can("resolve") && html`<button disabled=${isBusy} onClick=${() => press("resolve")}>Resolve ${alerts}</button>`}
      ${can("snooze") && rows.length === 1 && html`<button onClick=${() => setDialog("snooze")}>Snooze…</button>`}
      ${can("escalate") && rows.length === 1 && one.latest && html`<button onClick=${() => setDialog("escalate")}>Escalate…</button>`}
    </div>
    ${dialog === "snooze" && html`<${SnoozeDialog} patient=${one.patient_id} name=${one.patient_name} kind=${one.type}
      close=${() => setDialog("")} done=${reload} />`}
    ${dialog === "escalate" && one.latest && html`<${EscalateAlertDialog} alert=${one.latest} close=${() => setDialog("")}
      done=${reload} />`}
  </section>`;
}

/** Ctrl or Cmd with Enter sends from any focus, unless a dialog is open; with Shift, it takes too.
 *  @param {(isTaking: boolean) => void} send */
function useSend(send) {
  const latest = useRef(send);
  latest.current = send;
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        latest.current(event.shiftKey);
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
