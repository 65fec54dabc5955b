// The alert board: one row for each patient and cause, the most severe first. The order is held while the board is in use; new rows are
// announced.
import { get } from "../api.js";
import { answering, criticalCauses } from "../criticals.js";
import { useKeys } from "../keys.js";
import { listen, onGap, stream } from "../live.js";
import { useQuery } from "../query.js";
import { me } from "../session.js";
import { countOf } from "../ui/format.js";
import { Field } from "../ui/form.js";
import { Loaded, EmptyState, useLoad } from "../ui/states.js";
import { Pages } from "../ui/table.js";
import { daysAgo, ZoneNote } from "../ui/time.js";
import { html, useEffect, useMemo, useRef, useState } from "../view.js";
import { Answered } from "./alerts/closed.js";
import { Bar } from "./alerts/bulk_bar.js";
import { Board } from "./alerts/board.js";
import { useHeld } from "./alerts/held_list.js";
import { kindOptions, Tabs } from "./alerts/tabs.js";

/** @typedef {import("./alerts/held_list.js").Row} Row */

const pageSize = 50;
const spans = /** @type {[string, string][]} */ ([["", "Any time"], ["1", "Since yesterday"], ["7", "Last 7 days"],
  ["30", "Last 30 days"]]);

/** The query of each tab. @param {string} tab @returns {Record<string, unknown>} */
const tabQuery = (tab) => ({
  critical: { status: "active", level: "critical" }, warning: { status: "active", level: "warning" },
  mine: { status: "acknowledged", acknowledged_by: me.value?.email }, progress: { status: "acknowledged" },
  snoozed: { status: "active", snoozed: true }, all: {},
}[tab] ?? { status: "active" });

export function Alerts() {
  const [query, setQuery] = useQuery({ show: "open", type: "", days: "", patients: "", page: 1 });
  const filters = { type: query.type, mine: query.patients === "mine" ? "true" : "", date_from: query.days && daysAgo(Number(query.days)) };
  const answered = query.show === "answered";
  const [counts, setCounts] = useState(/** @type {Record<string, number> | null} */ (null));
  useEffect(() => {
    if (answered) { // the other tabs load the counts with their rows
      get("alerts/groups/", { ...filters, page_size: 1 }).then((data) => setCounts(data.counts), () => {});
    }
  }, [answered, JSON.stringify(filters)]);
  return html`<div class="heading alerts-head"><h1>Alerts</h1><${Tabs} shown=${query.show} choose=${(show) => setQuery({ show })}
    counts=${counts} /></div>
    <div class="filters slim no-print" role="search" aria-label="Filter the alerts">
      <${Field} label="Kind" name="type" kind="select" value=${query.type} options=${kindOptions}
        onChange=${(event) => setQuery({ type: event.target.value })} />
      <${Field} label="Since" name="days" kind="select" value=${query.days} options=${spans}
        onChange=${(event) => setQuery({ days: event.target.value })} />
      <${Field} label="Patients" name="patients" kind="select" value=${query.patients}
        options=${[["", "All patients"], ["mine", "My care teams"]]}
        onChange=${(event) => setQuery({ patients: event.target.value })} />
      <${ZoneNote} />
    </div>
    ${stream.value === "cut" && html`<p class="notice warning"
      role="alert">Live updates are interrupted: this list may be out of date.</p>`}
    ${answered ? html`<${Answered} filters=${filters} page=${query.page} turn=${(page) => setQuery({ page })} />`
    : html`<${AlertGroups} key=${query.show} tab=${query.show} filters=${filters} page=${query.page} turn=${(page) => setQuery({ page })}
        counted=${setCounts} clear=${() => setQuery({ show: "open", type: "", days: "", patients: "" })} />`}`;
}

/**
 * The rows of a tab. Without clear they are those of one patient; the chart has the shortcuts for acts.
 * @param {{tab: string, filters: Record<string, string>, page: number, turn: (page: number) => void, clear?: () => void,
 *   counted: (counts: Record<string, number>) => void}} props
 */
export function AlertGroups({ tab, filters, page, turn, clear, counted }) {
  const requestKey = JSON.stringify([tab, filters, page]);
  const list = useLoad((signal) => get("alerts/groups/", { ...tabQuery(tab), ...filters, page, page_size: pageSize },
    signal).then((data) => ({ ...data, queryKey: requestKey })), [requestKey]);
  const deadlines = useLoad((signal) => get("escalations/deadlines/", {}, signal), []);
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [isBusy, setBusy] = useState(false);
  const held = useHeld(list.data, list.data?.queryKey ?? "", selected.size > 0 || isBusy);
  const rows = held.rows ?? [];
  useLive(list.reload);
  useEffect(() => { list.data && counted(list.data.counts); }, [list.data]);
  useEffect(() => setSelected(new Set()), [requestKey]);
  const picked = useMemo(() => rows.filter((one) => selected.has(one.key) && !one.gone), [rows, selected]);
  const note = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const write = () => { // immediately: the next keys are for the note, not shortcuts
    if (note.current) {
      note.current.focus();
    } else {
      queueMicrotask(() => note.current?.focus());
    }
  };
  const callbacks = {
    done: (/** @type {number[]} */ ids, /** @type {string} */ deed) => {
      held.mark(ids, deed);
      if (ids.length > 0) { // if all were refused, rows and note stay
        setSelected(new Set());
      }
      list.reload();
    },
    undone: (/** @type {number[]} */ ids) => { held.mark(ids, ""); list.reload(); },
  };
  const toggle = (/** @type {string[]} */ keys, /** @type {boolean} */ on) => setSelected((was) => {
    const next = new Set(was);
    keys.forEach((key) => (on ? next.add(key) : next.delete(key)));
    return next;
  });
  useKeys({ Escape: () => setSelected(new Set()) }, { active: picked.length > 0 });
  useKeys({ ".": { label: "Show new alerts", act: held.renew } }, { active: held.waiting.count > 0 });
  useEffect(() => { answering.value && held.renew(); }, [answering.value]);
  const nothing = !clear ? html`<${EmptyState} title="No alerts" />` : tab === "open" && !Object.values(filters).some(Boolean)
    ? html`<${EmptyState} title="No open alerts">All patients are within their limits.</${EmptyState}>`
    : html`<${EmptyState} title="No alerts match"> <button onClick=${clear}>Show all open alerts</button></${EmptyState}>`;
  return html`<div class="alerts-news" role="status" aria-live="polite">
    ${held.waiting.count > 0 && html`<button class="news" onClick=${held.renew}>
      ${held.waiting.critical > 0 && html`<span aria-hidden="true">▲</span> `}${held.waiting.count} new${held.waiting.critical > 0
        && `, ${held.waiting.critical} critical`}: show${criticalCauses.value.length === 0 && html` <kbd>.</kbd>`}</button>`}</div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0 && rows.length === 0} nothing=${nothing}>
      ${(data) => html`<div ...${held.guards}>
        <${Board} rows=${rows} ofPatient=${!clear}
          levels=${data.levels} tab=${tab} deadlines=${deadlines.data} chosen=${selected} toggle=${toggle}
          callbacks=${callbacks} busy=${setBusy} write=${write} reload=${list.reload} />
      </div>
      ${data.count > pageSize && html`<${Pages} page=${page} count=${data.count} size=${pageSize} turn=${turn} of="the causes" />`}`}
    </${Loaded}>
    ${picked.length > 0 && html`<${Bar} rows=${picked} note=${note} callbacks=${callbacks} clear=${() => setSelected(new Set())}
      busy=${setBusy}
      reload=${list.reload} />`}
    <p class="unseen" role="status">${picked.length > 0 ? `${countOf(picked.length, "cause")} selected` : ""}</p>`;
}

/** Reloads the list when alerts change, once for many changes. @param {() => void} reload */
function useLive(reload) {
  useEffect(() => {
    const soonest = 3000;
    let timer = 0;
    let last = 0;
    const soon = () => {
      timer ||= setTimeout(() => { timer = 0; last = Date.now(); reload(); }, Math.max(250, soonest - (Date.now() - last)));
    };
    const stops = [listen("alert", soon), listen("escalation", soon), onGap(soon)];
    return () => { clearTimeout(timer); stops.forEach((stop) => stop()); };
  }, []);
}
