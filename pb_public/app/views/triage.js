// The live triage list: patients by urgency, one row each, with single-key actions; the open patient is in the side panel.
import { get } from "../api.js";
import { answering } from "../criticals.js";
import { useKeys } from "../keys.js";
import { stream } from "../live.js";
import { useQuery } from "../query.js";
import { go, updateAbout } from "../router.js";
import { me } from "../session.js";
import { fullTime } from "../ui/format.js";
import { asProblem, Loaded, EmptyState, useLoad } from "../ui/states.js";
import { Pages } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { ZoneNote } from "../ui/time.js";
import { classes, html, useEffect, useRef, useState } from "../view.js";
import { SnoozeDialog } from "./alerts/dialogs.js";
import { EscalateDialog } from "./escalate.js";
import { acknowledge, openAlerts, review, reviewBlocked, reportResult } from "./triage/actions.js";
import { Levels, FilterButtons, ReviewProgress, ListControls } from "./triage/toolbar.js";
import { useLiveList } from "./triage/live.js";
import { useChangedRows } from "./triage/row_animation.js";
import { useNextPatient } from "./triage/next_patient.js";
import { pageSize } from "./triage/order.js";
import { noteField, Panel } from "./triage/panel.js";
import { useHeldOrder } from "./triage/hold_order.js";
import { rowOf, Rows } from "./triage/rows.js";
import { groupCounts } from "./triage/labels.js";

/** @typedef {import("./triage/order.js").Row} Row */

const defaults = {
  risk_level: "", has_unack_alerts: "", needs_review: "", mine: "", escalated: "", search: "", ordering: "-risk_score", rows: "compact",
    page: 1,
};
const none = { risk_level: "", has_unack_alerts: "", needs_review: "", mine: "", escalated: "", search: "" };

/** @param {{open?: string}} props open is the patient in the side panel */
export function Triage({ open = "" }) {
  const [query, setQuery] = useQuery(defaults, ["search"]);
  const { rows: height, page, ...filters } = query;
  const requestKey = JSON.stringify([filters, page]);
  const fetch = (/** @type {AbortSignal} */ signal) => get("triage/patients/", { ...filters, page, page_size: pageSize, concern: true },
    signal);
  const list = useLoad(fetch, [requestKey]);
  const stats = useLoad((signal) => get("triage/patients/stats/", {}, signal), []);
  const changed = useChangedRows(list.data?.results, requestKey);
  const { hold, waiting } = useLiveList(list, stats, filters, () => fetch(new AbortController().signal));
  const { rest, resting, done: resumeOrder } = useHeldOrder(hold, open !== "");
  const show = () => { resumeOrder(); setQuery({ page: 1 }); list.reload(); scrollTo(0, 0); };
  const narrowed = Object.keys(none).some((name) => name !== "risk_level" && query[name] !== "");
  const rows = list.data?.results ?? [];
  const work = useWork({ rows, list, open, page, change: setQuery, filters });
  useKeys({ ".": { label: "Update the order", act: show } });
  useEffect(() => { answering.value && show(); }, [answering.value]);
  return html`<div class=${classes("triage-page", height)}>
    <p class="print-only"><strong>Handover</strong>, ${fullTime(new Date().toISOString())}, by ${me.value?.first_name} ${
      me.value?.last_name}</p>
    <div class="bars"><h1>Triage</h1><${Levels} stats=${stats.data} query=${query} change=${setQuery} /><${ReviewProgress}
      stats=${stats.data} />
      </div>
    <div class="bars no-print"><${FilterButtons} stats=${stats.data} query=${query} change=${setQuery} />
      <${ListControls} query=${query} change=${setQuery} /></div>
    ${stream.value === "cut" && html`<p class="notice warning" role="alert">
      <strong>No live connection.</strong> This list may be out of date, and new critical alerts are not shown.${" "}
      It refreshes when the connection is restored.
      <button class="quiet" onClick=${list.reload}>Refresh now</button></p>`}
    <${Loaded} from=${list} empty=${(data) => data.count === 0}
      nothing=${html`<${Empty} narrowed=${narrowed || query.risk_level !== ""} clear=${() => setQuery(none)} />`}>${() => html`
      <div class="columns" aria-hidden="true"><span>Score</span><span>Patient</span><span>Out of range</span><span>14 days, range</span>
        <span>Why</span><span>Who, state</span></div>
      <${Rows} rows=${rows} grouped=${filters.ordering === "-risk_score"}
        counts=${stats.data && !narrowed ? groupCounts(stats.data) : null} changed=${changed}
        current=${work.current} opened=${open} pick=${work.pick} acts=${work.acts} hold=${rest} busy=${work.busy} />
      <${Pages} page=${page} count=${list.data.count} size=${pageSize} turn=${(n) => setQuery({ page: n })} />`}
    </${Loaded}>
    <${Foot} held=${resting && waiting} show=${show} />
    ${work.shown && html`<${Panel} key=${work.shown.patient_id} row=${work.shown}
      at=${(page - 1) * pageSize + rows.indexOf(work.shown) + 1} count=${list.data?.count ?? 0}
      work=${work} />`}
    ${work.dialog}
  </div>`;
}

/** @param {{narrowed: boolean, clear: () => void}} props */
const Empty = ({ narrowed, clear }) => (narrowed
  ? html`<div class="state empty"><h2>No patients match</h2><p>Clear the filters to show all patients.</p><button
    onClick=${clear}>Clear filters</button></div>`
  : html`<${EmptyState} title="No patients on the list">Patients appear here when they are enrolled.</${EmptyState}>`);

/** @param {{held: boolean, show: () => void}} props */
const Foot = ({ held, show }) => html`<p class="keys no-print"><span><kbd>J</kbd> <kbd>K</kbd> next, previous</span><span class="spare">
  <kbd>Enter</kbd> open</span><span><kbd>A</kbd> acknowledge</span><span><kbd>C</kbd> call</span><span><kbd>E</kbd> escalate</span>
  <span class="spare"><kbd>N</kbd> note</span><span><kbd>R</kbd> reviewed, next</span><span class="spare"><kbd>T</kbd> take</span>
  <span><kbd>?</kbd> all shortcuts</span><${ZoneNote} />
  <button class="link spare" onClick=${() => print()}>Print handover</button>
  <span class="held" role="status">${held && html`Order held while you work
    <button class="link" onClick=${show}>Update</button>`}</span></p>`;

/**
 * The actions on the current row, by shortcut and by click.
 * @param {{rows: Row[], list: {data: any, loading: boolean, reload: () => void}, open: string, page: number,
 *  change: (next: {page: number}) => void,
 *   filters: import("./triage/order.js").Filters}} props
 */
function useWork({ rows, list, open, page, change, filters }) {
  const [current, setCurrent] = useState(open);
  const [busy, setBusy] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const [dialog, setDialog] = useState(/** @type {{kind: "escalate" | "snooze", row: Row} | null} */ (null));
  const [pending, setPending] = useState({ for: "", what: "" }); // an action requested of the panel before it is rendered
  const nextPatient = useNextPatient(filters);
  const targetId = useRef(""); // the patient to select when the page has loaded
  const currentRef = useRef(current); // the current row, for actions started on an earlier row
  currentRef.current = current;
  const running = useRef(/** @type {Set<string>} */ (new Set()));
  const at = rows.findIndex((row) => row.patient_id === current);
  const shown = rows.find((row) => row.patient_id === open) ?? null;
  const close = () => { updateAbout({ open: undefined }); rowOf(current)?.focus(); };
  const pick = (/** @type {Row} */ row) => {
    nextPatient.pass(row);
    setCurrent(row.patient_id);
    if (open && open !== row.patient_id) {
      updateAbout({ open: row.patient_id });
    }
  };
  const selectRow = (/** @type {number} */ n) => {
    const row = rows[n];
    if (row) {
      pick(row);
      const item = rowOf(row.patient_id);
      item?.focus({ preventScroll: true });
      item?.scrollIntoView({ block: "nearest" });
    } else if (n >= rows.length && rows.length > 0) {
      nextPatient.next().then((found) => {
        targetId.current = found?.id ?? "";
        if (!found) {
          toast("End of the list.");
        } else if (found.page !== page) {
          change({ page: found.page });
        } else {
          list.reload();
        }
      }, (error) => toast(asProblem(error).message, "problem"));
    } else if (n < 0 && list.data?.previous) {
      targetId.current = "last";
      change({ page: page - 1 });
    }
  };
  useEffect(() => {
    if (targetId.current && !list.loading && rows.length > 0) {
      const n = rows.findIndex((row) => row.patient_id === targetId.current);
      selectRow(targetId.current === "last" ? rows.length - 1 : Math.max(n, 0));
      targetId.current = "";
    }
  }, [rows, list.loading]);
  const runAction = async (/** @type {Row} */ row, /** @type {() => Promise<any>} */ act) => {
    const id = row.patient_id;
    if (running.current.has(id)) {
      return false; // already running
    }
    running.current.add(id);
    setBusy(new Set(running.current));
    const isDone = await reportResult(row, act(), list.reload);
    running.current.delete(id);
    setBusy(new Set(running.current));
    return isDone;
  };
  const openPanel = (/** @type {Row} */ row, what = "") => {
    setCurrent(row.patient_id);
    updateAbout({ open: row.patient_id });
    if (what === "note" && open === row.patient_id) {
      noteField()?.focus(); // immediately: the next keys are for the note
    } else {
      setPending({ for: row.patient_id, what });
    }
  };
  /** Returns the focus to the list and advances, unless the user has moved to another row. */
  const done = (/** @type {Row} */ row, /** @type {boolean} */ on) => {
    if (row.patient_id === currentRef.current) {
      rowOf(currentRef.current)?.focus({ preventScroll: true });
      on && selectRow(at + 1);
    }
  };
  const acts = {
    open: openPanel,
    whole: (/** @type {Row} */ row) => go("patient", { id: row.patient_id }),
    // A critical alert requires a note; others are acknowledged immediately.
    acknowledge: (/** @type {Row} */ row) => (row.unacknowledged_critical > 0 ? openPanel(row, "note") : void acts.answer(row)),
    /** Advances to the next patient if nothing is left to do. */
    answer: async (/** @type {Row} */ row, /** @type {any[] | null} */ open = null, note = "", undone = () => {},
      /** @type {any} */ take = null) => {
      let rest = row.active_escalations - (take ? 1 : 0);
      const isDone = await runAction(row, async () => {
        const answer = await acknowledge(open ?? await openAlerts(row.patient_id), note, undone, take);
        rest += answer.left;
        return answer;
      });
      if (isDone) {
        done(row, rest === 0);
      }
      return isDone;
    },
    escalate: (/** @type {Row} */ row) => setDialog({ kind: "escalate", row }),
    snooze: (/** @type {Row} */ row) => setDialog({ kind: "snooze", row }),
    review: async (/** @type {Row} */ row, note = "") => {
      const reason = reviewBlocked(row);
      if (reason) {
        openPanel(row, "note");
        toast(html`<span><bdi>${row.patient_name}</bdi>: ${reason}</span>`, "problem");
        return false;
      }
      const isDone = await runAction(row, () => review(row, note));
      if (isDone) {
        done(row, true);
      }
      return isDone;
    },
  };
  const on = (/** @type {(row: Row) => void} */ act) => () => { const row = rows[at]; if (row) { act(row); } };
  useKeys({
    j: { label: "Next patient", act: () => selectRow(at + 1) }, k: { label: "Previous patient", act: () => selectRow(at < 0 ? 0 : at - 1) },
    ArrowDown: () => selectRow(at + 1), ArrowUp: () => selectRow(at < 0 ? 0 : at - 1),
    Enter: { label: "Open in side panel; again: open chart",
      act: on((row) => (open === row.patient_id ? acts.whole(row) : openPanel(row))) },
    o: { label: "Open chart", act: on(acts.whole) },
    a: { label: "Acknowledge", act: on(acts.acknowledge) }, c: { label: "Call and start the timer", act: on((row) => openPanel(row,
      "call")) },
    e: { label: "Escalate", act: on(acts.escalate) }, n: { label: "Note", act: on((row) => openPanel(row, "note")) },
    r: { label: "Reviewed, next patient", act: on((row) => void acts.review(row)) }, s: { label: "Snooze", act: on(acts.snooze) },
    t: { label: "Take the escalation", act: on((row) => openPanel(row, "take")) },
  }, { active: rows.length > 0 });
  const closed = () => setDialog((now) => (now === dialog ? null : now)); // a closed dialog reports late, when the next one may be open
  const dialogView = dialog && (dialog.kind === "escalate"
    ? html`<${EscalateDialog} patient=${{ id: dialog.row.patient_id, name: dialog.row.patient_name }} close=${closed}
      done=${() => stream.value === "live" || list.reload()} />`
    : html`<${SnoozeDialog} patient=${dialog.row.patient_id} kind=${dialog.row.concern?.type ?? "blood_pressure"} close=${closed}
        done=${() => stream.value === "live" || list.reload()} />`);
  return {
    current, busy, shown, pick, acts, dialog: dialogView, close, doing: runAction, fetch: list.reload,
      back: () => rowOf(currentRef.current)?.focus(),
    next: () => selectRow(at + 1), before: () => selectRow(at - 1), pending: pending.for === open ? pending.what : "",
      clearPending: () => setPending({ for: "", what: "" }),
  };
}
