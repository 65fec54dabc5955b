// The month's end: what waits for its review or its way to the payer, what holds it back and what mends that; forty reviewed with one press,
// or one by one. Filters, page and stage stand in the address.
import { get, post } from "../../api.js";
import { can } from "../../can.js";
import { dialogOpen, useKeys } from "../../keys.js";
import { useQuery } from "../../query.js";
import { go } from "../../router.js";
import { Field } from "../../ui/form.js";
import { clock, money, number } from "../../ui/format.js";
import { asProblem, Loaded, Nothing, useLoad } from "../../ui/states.js";
import { Pages } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { classes, html, useEffect, useRef, useState } from "../../view.js";
import { Batches, NextBatch, Send } from "./month/batches.js";
import { Blocks, Reach } from "./month/aside.js";
import { Funnel } from "./month/funnel.js";
import { Look } from "./month/look.js";
import { Sheet } from "./month/sheet.js";
import { amountOf, mainReason, mainWords, sumOf } from "./reasons.js";
import { stateName } from "./words.js";

/** @typedef {import("./reasons.js").Row} Row */
/** @typedef {import("./month/funnel.js").FunnelData} FunnelData */

const perPage = 100;
const most = 1000; // entries that one call reviews

/** What is done with the entries of each stage. @type {Record<string, {title: string, verb: string}>} */
const stages = { pending_review: { title: "To review", verb: "review" }, reviewed: { title: "Reviewed, to be sent", verb: "send" } };

/** @param {{month: string, funnel: FunnelData, turn: number, changed: () => void}} props turn counts what has changed */
export function MonthEnd({ month, funnel, turn, changed }) {
  const [query, ask] = useQuery({ stage: "pending_review", show: "all", why: "", code: "", payer: "", page: 1 });
  const sheet = useLoad((signal) => get("billing/month-end/", { month }, signal), [month, turn]);
  const near = useLoad((signal) => get("billing/near-billable/", { ordering: "-worth" }, signal), [turn]);
  const choose = (/** @type {string} */ stage) => (stages[stage] ? ask({ stage, show: "all", why: "" }) : go("billing", {}, { tab: "entries", status: stage, ...(month ? daysOf(month) : {}) }));
  const rows = /** @type {Row[]} */ (sheet.data?.results ?? []).filter((row) => row.lifecycle_status === query.stage).sort(byName);
  const blocked = (sheet.data?.results ?? []).filter((/** @type {Row} */ row) => row.lifecycle_status === "pending_review" && !row.ready).length;
  return html`<${Funnel} funnel=${funnel} blocked=${sheet.data && blocked} at=${query.stage} choose=${choose} />
    <div class="month-end">
      <div class="beside"><${Blocks} rows=${rows} why=${query.why} choose=${(/** @type {string} */ why) => ask({ why, show: why ? "blocked" : "all" })} />
        ${near.data && funnel.days_left > 0 && html`<${Reach} near=${near.data.results} />`}</div>
      <div class="panel wide"><${Loaded} from=${sheet}>${() => html`<${Work} key=${query.stage} sheet=${sheet.data} rows=${rows} query=${query} ask=${ask} changed=${changed} />`}</${Loaded}></div>
    </div>
    <div class="after"><${Batches} turn=${turn} changed=${changed} />
      ${sheet.data && html`<${NextBatch} sheet=${sheet.data} changed=${changed} errors=${() => ask({ stage: "reviewed", show: "blocked", why: "" })} />`}</div>`;
}

/** A patient's entries stand together. @param {Row} a @param {Row} b */
const byName = (a, b) => a.patient_name.localeCompare(b.patient_name) || a.patient_id.localeCompare(b.patient_id) || a.cpt_code.localeCompare(b.cpt_code) || a.service_date.localeCompare(b.service_date);

/** The first and last day of a month. @param {string} month */
export function daysOf(month) {
  const [year, of] = month.split("-").map(Number);
  return { date_from: `${month}-01`, date_to: `${month}-${String(new Date(year, of, 0).getDate()).padStart(2, "0")}` };
}

/** @param {{sheet: any, rows: Row[], query: any, ask: (next: any) => void, changed: () => void}} props */
function Work({ sheet, rows, query, ask, changed }) {
  const { title, verb } = stages[query.stage];
  const [without, leave] = useState(/** @type {Set<string>} */ (new Set())); // all that are ready are chosen, but for these
  const [open, show] = useState("");
  const [at, focus] = useState("");
  const [looking, look] = useState(/** @type {string | null} */ (null));
  const [busy, work] = useState(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const reviews = can("manageBilling") && query.stage === "pending_review";

  const narrowed = rows.filter((row) => (!query.code || row.cpt_code === query.code) && (!query.payer || row.payer === query.payer));
  const ready = narrowed.filter((row) => row.ready);
  const held = narrowed.filter((row) => !row.ready);
  const shown = { all: narrowed, ready, blocked: held.filter((row) => !query.why || mainReason(row) === query.why) }[query.show] ?? narrowed;
  const page = Math.min(query.page, Math.max(1, Math.ceil(shown.length / perPage)));
  const lines = shown.slice((page - 1) * perPage, page * perPage);
  const chosen = ready.filter((row) => !without.has(row.entry_id));
  const here = lines.some((row) => row.entry_id === at) ? at : lines[0]?.entry_id ?? "";

  const toggle = (/** @type {Row} */ row) => {
    const next = new Set(without);
    next.delete(row.entry_id) || next.add(row.entry_id);
    leave(next);
  };
  const toggleAll = () => {
    const seen = lines.filter((row) => row.ready);
    const next = new Set(without);
    seen.every((row) => !next.has(row.entry_id)) ? seen.forEach((row) => next.add(row.entry_id)) : seen.forEach((row) => next.delete(row.entry_id));
    leave(next);
  };
  const review = async (/** @type {Row[]} */ list) => {
    if (busy || list.length === 0) {
      return;
    }
    work(true);
    try {
      await reviewAll(list, changed);
    } catch (error) {
      toast(asProblem(error).message, "problem");
    } finally {
      work(false);
    }
  };
  const move = (/** @type {number} */ by) => {
    const next = lines[Math.max(0, Math.min(lines.length - 1, lines.findIndex((row) => row.entry_id === here) + by))];
    if (next) {
      focus(next.entry_id);
      /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(`[data-key="${next.entry_id}"]`))?.focus();
    }
  };
  const current = lines.find((row) => row.entry_id === here);
  useKeys({
    j: { does: "Next entry", act: () => move(1) }, k: { does: "Previous entry", act: () => move(-1) },
    ArrowDown: () => move(1), ArrowUp: () => move(-1),
    x: { does: "Choose or leave out", act: () => current?.ready && toggle(current) },
    o: { does: "Open what stands against it", act: () => show(open === here ? "" : here) },
    Enter: { does: "Look one by one", act: () => current && look(here) },
  }, { while: looking === null });
  const latest = useRef(() => {});
  latest.current = () => void (reviews && review(chosen));
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.repeat && !dialogOpen()) {
        event.preventDefault();
        latest.current();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  const chips = /** @type {[string, string, number, string][]} */ ([["all", "All", narrowed.length, ""], ["ready", "Ready", ready.length, "good"], ["blocked", "Blocked", held.length, "warning"]]);
  const choices = (/** @type {(row: Row) => string} */ of) => [...new Set(rows.map(of))].sort().map((value) => /** @type {[string, string]} */ ([value, value]));
  return html`<section ref=${box} aria-labelledby="sheet-title">
    <header class="head-of-sheet"><h2 id="sheet-title">${title}</h2>
      <div class="chips" role="group" aria-label="Which entries">${chips.map(([key, name, count, tone]) => html`<button key=${key} type="button" aria-pressed=${query.show === key ? "true" : "false"}
        onClick=${() => ask({ show: key, why: "" })}>${tone && html`<span class=${classes("mark", tone)} aria-hidden="true">${tone === "good" ? "✓" : "◆"}</span> `}${name} <strong>${number(count)}</strong></button>`)}</div>
      ${query.why && html`<button type="button" class="chip" aria-label=${`No longer only: ${mainWords(query.why)}`} onClick=${() => ask({ why: "", show: "all" })}>${mainWords(query.why)} ✕</button>`}
      <div class="narrow">
        <${Field} label="Code" name="code" kind="select" value=${query.code} options=${[["", "All codes"], ...choices((row) => row.cpt_code)]} onChange=${(event) => ask({ code: event.target.value })} />
        <${Field} label="Payer" name="payer" kind="select" value=${query.payer} options=${[["", "All payers"], ...choices((row) => row.payer)]} onChange=${(event) => ask({ payer: event.target.value })} />
        <small class="checked">Facts checked ${clock(sheet.checked_at)}</small></div></header>
    ${sheet.left_out > 0 && html`<p class="notice warning">${number(sheet.left_out)} more entries of the month are not in this list: review these first.</p>`}
    ${lines.length === 0 ? html`<${Nothing} title=${rows.length === 0 ? nothing[query.stage] : "No entry matches"} />`
      : html`<${Sheet} rows=${lines} chosen=${new Set(chosen.map((row) => row.entry_id))} open=${open} at=${here} toggle=${toggle} toggleAll=${toggleAll} caption=${title} verb=${verb}
        show=${(/** @type {Row} */ row) => show(open === row.entry_id ? "" : row.entry_id)} focus=${(/** @type {Row} */ row) => focus(row.entry_id)} />`}
    ${shown.length > perPage && html`<${Pages} page=${page} count=${shown.length} size=${perPage} turn=${(n) => ask({ page: n })} of=${title} />`}
    <footer class="foot-of-sheet"><p role="status"><strong>${number(chosen.length)} ${query.stage === "reviewed" ? "chosen" : "ready"}, ${money(sumOf(chosen, amountOf))}</strong>
      ${reviews && html` <small>Blocked ones cannot be chosen. Your name goes on each review.</small>`}</p>
      <div class="actions">${lines.length > 0 && html`<button type="button" onClick=${() => look(here)}>Look one by one <kbd>↵</kbd></button>`}
        ${reviews && html`<button type="button" class="main" disabled=${busy || chosen.length === 0} onClick=${() => review(chosen)}>${busy ? "One moment" : `Review ${number(chosen.length)}`} <kbd>⌘↵</kbd></button>`}
        ${query.stage === "reviewed" && html`<${Send} sends=${sheet.sends_claims} rows=${chosen} changed=${changed} />`}</div></footer>
    ${looking !== null && html`<${Look} rows=${shown} at=${looking} turn=${look} close=${() => { look(null); focus(looking); }} reviews=${reviews} review=${(/** @type {Row} */ row) => review([row])} />`}
  </section>`;
}

/** @type {Record<string, string>} */
const nothing = { pending_review: "Nothing waits for its review", reviewed: `Nothing is ${stateName("reviewed").toLowerCase()}` };

/** Reviews entries, and says what became of them; undone, they are sent back to where they waited. @param {Row[]} rows @param {() => void} changed */
async function reviewAll(rows, changed) {
  const done = [];
  let left = 0;
  for (let i = 0; i < rows.length; i += most) {
    const answer = await post("billing/entries/review/", { entry_ids: rows.slice(i, i + most).map((row) => row.entry_id) });
    done.push(...answer.details.filter((/** @type {any} */ one) => one.status === "reviewed").map((/** @type {any} */ one) => one.id));
    left += answer.skipped;
  }
  changed();
  const undo = async () => {
    for (const id of done) {
      await post(`billing/entries/${id}/return/`, { reason: "The review was taken back." });
    }
    changed();
  };
  toast(`${number(done.length)} reviewed${left > 0 ? `, ${number(left)} held back since they were looked at` : ""}.`, left > 0 ? "problem" : "done", done.length > 0 ? { undo } : {});
}
