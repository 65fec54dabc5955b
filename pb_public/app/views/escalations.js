// The escalation board, most urgent first: next step, ladder, assignee; and who is on call.
import { getAll, get } from "../api.js";
import { can } from "../permissions.js";
import { useKeys } from "../keys.js";
import { listen, onGap, stream } from "../live.js";
import { useQuery } from "../query.js";
import { go } from "../router.js";
import { me } from "../session.js";
import { Loaded, EmptyState, useLoad } from "../ui/states.js";
import { Pages } from "../ui/table.js";
import { ZoneNote } from "../ui/time.js";
import { classes, html, useEffect, useRef, useState } from "../view.js";
import { byUrgency, nextStep } from "./alerts/escalation_steps.js";
import { OnCallPanel } from "./escalations/on_call_panel.js";
import { NewEscalation } from "./escalations/new_escalation.js";
import { EscalationRow } from "./escalations/row.js";

/** @typedef {import("./alerts/escalation_steps.js").Escalation} Escalation */

const pageSize = 25;
const tabs = /** @type {[string, string][]} */ ([["open", "Open"], ["waiting", "Not taken"], ["mine", "Mine"], ["note", "Note due"],
  ["closed", "Closed"]]);
const due = (/** @type {Escalation} */ one, /** @type {any} */ deadlines) => one.taken
  && (nextStep(one, deadlines)?.at ?? Infinity) <= Date.now();

/** Filters of the open escalations, by tab. @type {Record<string, (one: Escalation, deadlines: any) => boolean>} */
const belongs = {
  open: () => true, waiting: (one) => !one.taken, mine: (one) => one.assigned_to === me.value?.email, note: due,
};

export function Escalations() {
  const [query, setQuery] = useQuery({ show: "open", page: 1 });
  const [isCreating, setCreating] = useState(false);
  const deadlines = useLoad((signal) => get("escalations/deadlines/", {}, signal), []);
  const open = useLoad(() => getAll("escalations/", { active: true, ordering: "urgency" }), []);
  const over = query.show === "closed";
  const closed = useLoad((signal) => (over ? get("escalations/", { active: false, page: query.page, page_size: pageSize }, signal)
    : Promise.resolve(null)), [over, query.page]);
  const put = useLive(open, closed);
  useKeys(can("escalate") ? { e: { label: "New escalation", act: () => setCreating(true) } } : {});
  useClock();
  const list = byUrgency(open.data ?? [], deadlines.data);
  const shown = over ? closed.data?.results ?? [] : list.filter((one) => (belongs[query.show] ?? belongs.open)(one, deadlines.data));
  const count = (/** @type {string} */ tab) => (belongs[tab] && open.data
    ? list.filter((one) => belongs[tab](one, deadlines.data)).length : "");
  return html`<div class="heading escalations-head"><h1>Escalations</h1>
      <div class="choices views" role="group" aria-label="Which escalations">
        ${tabs.map(([code, name]) => html`<button key=${code} class=${classes(code === "waiting" && "level critical")}
        aria-pressed=${query.show === code ? "true" : "false"} onClick=${() => setQuery({ show: code })}>
          ${name}${count(code) !== "" && html` <strong>${count(code)}</strong>`}</button>`)}</div>
      <${ZoneNote} />
      ${can("escalate") && html`<button onClick=${() => setCreating(true)}>New escalation <kbd>E</kbd></button>`}
      <button onClick=${() => go("on-call")}>On call</button>
    </div>
    ${stream.value === "cut" && html`<p class="notice warning"
      role="alert">Live updates are interrupted: this list may be out of date.</p>`}
    <div class="with-duty">
      <${Loaded} from=${over ? closed : open} empty=${() => shown.length === 0}
        nothing=${html`<${EmptyState} title=${over ? "No closed escalations" : "No escalations"}>
        ${query.show === "open" ? "No open escalations." : html`<button
          onClick=${() => setQuery({ show: "open" })}>Show all open escalations</button>`}</${EmptyState}>`}>
        ${() => html`<div>${heads}<${Rows} list=${shown} deadlines=${deadlines.data} put=${put} grouped=${!over} />
          ${over && closed.data && html`<${Pages} page=${query.page} count=${closed.data.count} size=${pageSize}
            turn=${(page) => setQuery({ page })} />`}</div>`}
      </${Loaded}>
      <${OnCallPanel} deadlines=${deadlines.data} />
    </div>
    ${isCreating && html`<${NewEscalation} close=${() => setCreating(false)} done=${open.reload} />`}`;
}

/** Column heads, for sighted users; rows have labels for screen readers. */
const heads = html`<p class="escalation-heads" aria-hidden="true"><span>Urgency</span><span>Patient and reason</span><span>Open for</span>
  <span>Ladder: who is notified, and when</span><span>Assigned to</span><span>Next step</span></p>`;

/** The group of an escalation. @param {Escalation} one */
const groupOf = (one) => (one.taken ? "In progress" : { stat: "Stat, not taken", urgent: "Urgent, not taken",
  routine: "Routine, not taken" }[one.priority]);

/** @param {{list: Escalation[], deadlines: any, put: (one: any) => void, grouped: boolean}} props */
function Rows({ list, deadlines, put, grouped }) {
  const box = useRef(/** @type {HTMLOListElement | null} */ (null));
  const [current, setCurrent] = useState(0);
  const [open, setOpen] = useState(0);
  const at = list.findIndex((one) => one.id === current);
  const step = (/** @type {number} */ by) => {
    const next = list[Math.min(Math.max(at + by, 0), list.length - 1)];
    const row = /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(`[data-key="${next?.id}"]`));
    row?.focus();
    row?.scrollIntoView({ block: "nearest" });
  };
  useKeys({
    j: { label: "Next escalation", act: () => step(1) }, k: { label: "Previous escalation", act: () => step(-1) }, ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
    o: { label: "Show details", act: () => at >= 0 && setOpen(open === current ? 0 : current) }, Enter: () => at >= 0
      && setOpen(open === current ? 0 : current),
  });
  return html`<ol class="escalations" ref=${box} aria-label="Escalations, the most urgent first"
    onFocusIn=${(event) => setCurrent(Number(event.target.closest("[data-key]")?.dataset.key ?? current))}>
    ${list.map((one, i) => html`
      ${grouped && (i === 0 || groupOf(list[i - 1]) !== groupOf(one)) && html`<li key=${groupOf(one)}
        class=${classes("group", !one.taken && { stat: "critical", urgent: "warning", routine: "" }[one.priority], one.taken && "good")}>
        <span class="sign" aria-hidden="true">${one.taken ? "●" : { stat: "▲", urgent: "◆", routine: "○" }[one.priority]}
          </span> ${groupOf(one)}
        <span class="soft">${list.filter((other) => groupOf(other) === groupOf(one)).length}</span></li>`}
      <${EscalationRow} key=${one.id} one=${one} deadlines=${deadlines} first=${at < 0 ? i === 0 : one.id === current}
        here=${one.id === current} open=${open === one.id}
        unfold=${() => setOpen(open === one.id ? 0 : one.id)} put=${put} />`)}
  </ol>`;
}

/** Updates changed escalations in place, and adds new ones. @param {any} open @param {any} closed */
function useLive(open, closed) {
  const put = (/** @type {Escalation} */ changed) => {
    const over = changed.status === "resolved" || changed.status === "cancelled";
    open.change((/** @type {Escalation[]} */ list) => [...list.filter((one) => one.id !== changed.id), ...(over ? [] : [changed])]);
    closed.change((/** @type {any} */ page) => page
      && { ...page, results: page.results.map((/** @type {Escalation} */ one) => (one.id === changed.id ? changed : one)) });
  };
  useEffect(() => {
    const stops = [onGap(() => { open.reload(); closed.reload(); }), listen("escalation", ({ data }) => put(data))];
    return () => stops.forEach((stop) => stop());
  }, []);
  return put;
}

/** Updates the times to the next step each 15 seconds. */
function useClock() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 15_000);
    return () => clearInterval(timer);
  }, []);
}
