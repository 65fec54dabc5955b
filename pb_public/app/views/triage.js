// The triage list, live: who needs attention now, why, and what to do about it with one key.
import { get, post } from "../api.js";
import { can } from "../can.js";
import { stream } from "../live.js";
import { go } from "../router.js";
import { Handling, Risk, share } from "../ui/badge.js";
import { Spark } from "../ui/chart.js";
import { ActionButton, Field } from "../ui/form.js";
import { ago, number, words } from "../ui/format.js";
import { asProblem, Loaded, Nothing, useLoad } from "../ui/states.js";
import { Pages } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { reading } from "../ui/vitals.js";
import { classes, html, useEffect, useRef, useState } from "../view.js";
import { acknowledgeWorst } from "./alerts/acts.js";
import { EscalateDialog } from "./escalate.js";
import { useLiveList } from "./triage/live.js";
import { useChanges, useSlide } from "./triage/motion.js";
import { pageSize } from "./triage/order.js";

/** @typedef {import("./triage/order.js").Row} Row */

const orderings = /** @type {[string, string][]} */ ([["-risk_score", "Most urgent first"], ["risk_score", "Least urgent first"],
  ["-last_reading_at", "Latest reading first"], ["last_reading_at", "Oldest reading first"]]);

export function Triage() {
  const [filters, filter] = useState({ risk_level: "", has_unack_alerts: "", needs_review: "", mine: "", search: "", ordering: "-risk_score" });
  const [page, turn] = useState(1);
  const asked = JSON.stringify([filters, page]);
  const list = useLoad((signal) => get("triage/patients/", { ...filters, page, page_size: pageSize, trends: true }, signal), [asked]);
  const stats = useLoad((signal) => get("triage/patients/stats/", {}, signal), []);
  const changed = useChanges(list.data?.results, asked);
  const hold = useLiveList(list, stats, filters);
  const narrow = (/** @type {Partial<typeof filters>} */ change) => { filter({ ...filters, ...change }); turn(1); };
  return html`
    <div class="heading"><h1>Triage</h1>${stats.data && html`<${Levels} stats=${stats.data} chosen=${filters.risk_level} choose=${(level) => narrow({ risk_level: level })} />`}</div>
    ${stats.data && html`<${Numbers} stats=${stats.data} />`}
    <${Filters} filters=${filters} narrow=${narrow} />
    ${stream.value === "cut" && html`<p class="notice warning" role="alert">The live connection is cut: this list may be old. It is fetched anew as soon as the connection is back.
      <button class="quiet" onClick=${list.reload}>Fetch now</button></p>`}
    <${Loaded} from=${list} empty=${(data) => data.count === 0} nothing=${html`<${Nothing} title="Nobody here">No patient matches these filters.</${Nothing}>`}>
      ${(data) => html`<${Rows} rows=${data.results} changed=${changed} fetch=${list.reload} hold=${hold} />
        <${Pages} page=${page} count=${data.count} size=${pageSize} turn=${turn} />`}
    </${Loaded}>
    <p class="hint no-print">Keys: <kbd>↓</kbd> <kbd>↑</kbd> choose a patient, <kbd>Enter</kbd> open, <kbd>A</kbd> acknowledge the most urgent alert, <kbd>E</kbd> escalate.</p>`;
}

/** @param {{filters: any, narrow: (change: any) => void}} props */
function Filters({ filters, narrow }) {
  const wait = useRef(0);
  const search = (/** @type {any} */ event) => {
    const wanted = event.target.value.trim();
    clearTimeout(wait.current);
    wait.current = setTimeout(() => narrow({ search: wanted }), 300);
  };
  return html`<details class="more no-print" open=${matchMedia("(min-width: 48rem)").matches}><summary>Search, filters, order</summary>
  <div class="filters" role="search" aria-label="Filter the list">
    <${Field} label="Name or MRN" name="search" kind="search" onInput=${search} />
    <${Field} label="Alerts" name="alerts" kind="select" value=${filters.has_unack_alerts} options=${[["", "With or without"], ["true", "With open alerts"], ["false", "Without open alerts"]]}
      onChange=${(event) => narrow({ has_unack_alerts: event.target.value })} />
    <${Field} label="Review" name="review" kind="select" value=${filters.needs_review} options=${[["", "Due or not"], ["true", "Review due"], ["false", "Not due"]]}
      onChange=${(event) => narrow({ needs_review: event.target.value })} />
    <${Field} label="Patients" name="mine" kind="select" value=${filters.mine} options=${[["", "All I may see"], ["true", "My care teams"]]}
      onChange=${(event) => narrow({ mine: event.target.value })} />
    <${Field} label="Order" name="ordering" kind="select" value=${filters.ordering} options=${orderings} onChange=${(event) => narrow({ ordering: event.target.value })} />
  </div></details>`;
}

/** @param {{stats: any, chosen: string, choose: (level: string) => void}} props */
function Levels({ stats, chosen, choose }) {
  const levels = /** @type {[string, string][]} */ ([["", "All"], ["critical", "Critical"], ["warning", "Warning"], ["normal", "Normal"], ["no_data", "No data"]]);
  const count = (/** @type {string} */ level) => (level === "" ? stats.total_patients : stats.patients_by_risk_level[level]);
  return html`<div class="choices" role="group" aria-label="Risk level">${levels.map(([level, name]) => html`
    <button key=${level} class=${classes("level", level)} aria-pressed=${chosen === level ? "true" : "false"} onClick=${() => choose(level)}>${name} <strong>${number(count(level))}</strong></button>`)}</div>`;
}

/** @param {{stats: any}} props */
const Numbers = ({ stats }) => html`<dl class="numbers">${[
  ["Open alerts", stats.total_unacknowledged_alerts], ["Active escalations", stats.active_escalations], ["Reviews due", stats.patients_needing_review],
  ["Reviewed today", stats.patients_reviewed_today], ["Average score", stats.avg_risk_score],
].map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${number(value)}</dd></div>`)}</dl>`;

/** The stream tells of what was done here as well; without it the list is fetched. @param {() => void} fetch */
const told = (fetch) => () => {
  if (stream.value !== "live") {
    fetch();
  }
};
const complain = (/** @type {unknown} */ error) => toast(asProblem(error).message, "problem");
const open = (/** @type {Row} */ row) => go("patient", { id: row.patient_id });

/** @param {{rows: Row[], changed: Set<string>, fetch: () => void, hold: ReturnType<typeof useLiveList>}} props */
function Rows({ rows, changed, fetch, hold }) {
  const [escalating, escalate] = useState(/** @type {Row | null} */ (null));
  const list = useRef(/** @type {HTMLOListElement | null} */ (null));
  useSlide(list, rows);
  useFirst(list);
  const key = (/** @type {KeyboardEvent} */ event, /** @type {Row} */ row, /** @type {number} */ at) => {
    const item = /** @type {HTMLElement} */ (event.currentTarget);
    if (event.target !== item || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const acts = {
      Enter: () => open(row), a: () => acknowledgeWorst(row.patient_id).then(told(fetch), complain), e: () => escalate(row),
      ArrowDown: () => focusRow(list.current, at + 1), ArrowUp: () => focusRow(list.current, at - 1),
    };
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  };
  const acts = useRef({ fetch, escalate, still: () => { hold.current.still = true; }, free: () => {
    hold.current.still = false;
    hold.current.release();
  } });
  const line = useLines(acts.current);
  return html`<ol class="triage" ref=${list} aria-label="Patients by urgency">
    ${rows.map((row, at) => html`<li key=${row.patient_id} data-id=${row.patient_id} tabindex="0" class=${classes(row.risk_level, changed.has(row.patient_id) && "moved")}
      aria-label=${`${row.patient_name}, ${words(row.risk_level)}, score ${row.risk_score}`} onKeyDown=${(event) => key(event, row, at)}>
      ${line(row)}
    </li>`)}
  </ol>
  ${escalating && html`<${EscalateDialog} patient=${{ id: escalating.patient_id, name: escalating.patient_name }} close=${() => escalate(null)} done=${told(fetch)} />`}`;
}

/** @param {HTMLElement | null} list @param {number} at */
const focusRow = (list, at) => /** @type {HTMLElement | undefined} */ (list?.children[at])?.focus();

/** The arrow down goes to the first row when nothing has the focus. @param {{current: HTMLElement | null}} list */
function useFirst(list) {
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "ArrowDown" && (document.activeElement === document.body || document.activeElement?.id === "main")) {
        event.preventDefault();
        focusRow(list.current, 0);
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Draws each row once for what it shows: at twenty changes a second the others must cost nothing. Ages are told anew each half minute.
 *  @param {any} acts */
function useLines(acts) {
  const drawn = useRef(/** @type {WeakMap<Row, any>} */ (new WeakMap()));
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => { drawn.current = new WeakMap(); tick((n) => n + 1); }, 30_000);
    return () => clearInterval(timer);
  }, []);
  return (/** @type {Row} */ row) => {
    const line = drawn.current.get(row) ?? html`<${Line} row=${row} fetch=${acts.fetch} escalate=${() => acts.escalate(row)} still=${acts.still} free=${acts.free} />`;
    drawn.current.set(row, line);
    return line;
  };
}

/** While the pointer is over a row's buttons the order is held, so that nobody acts on the wrong patient.
 *  @param {{row: Row, fetch: () => void, escalate: () => void, still: () => void, free: () => void}} props */
function Line({ row, fetch, escalate, still, free }) {
  const latest = Object.entries(row.latest_vitals).map(([kind, vital]) => ({ ...vital, observation_type: kind }));
  return html`
    <${Risk} score=${row.risk_score} level=${row.risk_level} />
    <div class="whom"><button class="link name" onClick=${() => open(row)}>${row.patient_name}</button><small>${row.mrn}</small></div>
    <ul class="why" aria-label="Why this score">${row.risk_factors.map((factor) => html`<li key=${factor.factor}><strong>${share(factor, row.handling)}</strong> ${factor.detail}</li>`)}</ul>
    <ul class="vitals" aria-label="Latest vitals">${latest.map((vital) => html`<li key=${vital.observation_type}>
      <strong>${reading(vital)}</strong> <${Trend} values=${row.trends?.[vital.observation_type] ?? []} /> <small>${ago(vital.measured_at)}</small></li>`)}</ul>
    <div class="counts">
      <${Handling} handling=${row.handling} />
      ${row.unacknowledged_alerts > 0 && html`<span class=${classes("badge", row.unacknowledged_critical > 0 ? "critical" : "warning")}><span aria-hidden="true">!</span>
        ${row.unacknowledged_alerts} open${row.unacknowledged_critical > 0 ? `, ${row.unacknowledged_critical} critical` : ""}</span>`}
      ${row.active_escalations > 0 && html`<span class="badge warning"><span aria-hidden="true">↑</span> ${row.active_escalations} escalated</span>`}
      <small>${row.last_reviewed_at ? `Reviewed ${ago(row.last_reviewed_at)}` : "Not reviewed yet"}</small>
    </div>
    <div class="acts no-print" onPointerEnter=${still} onPointerLeave=${free}>
      ${row.unacknowledged_alerts > 0 && html`<${ActionButton} act=${() => acknowledgeWorst(row.patient_id)} done=${told(fetch)} aria-label=${`Acknowledge ${row.patient_name}'s most urgent alert`}>Acknowledge</${ActionButton}>`}
      <button onClick=${escalate} aria-label=${`Escalate ${row.patient_name}`}>Escalate</button>
      ${can("review") && html`<${ActionButton} act=${() => post(`triage/patients/${row.patient_id}/review/`)} said="Review noted." done=${told(fetch)}
        aria-label=${`Note ${row.patient_name} as reviewed`}>Reviewed</${ActionButton}>`}
    </div>`;
}

/** @param {{values: number[]}} props */
const Trend = ({ values }) => html`<${Spark} values=${values} label=${`Last ${values.length}: ${values.join(", ")}`} />`;
