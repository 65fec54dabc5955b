// The month's work: select entries, review them one by one or together, and send them.
import { can } from "../../../can.js";
import { dialogOpen, useKeys } from "../../../keys.js";
import { Field } from "../../../ui/form.js";
import { clock, money, number } from "../../../ui/format.js";
import { asProblem, Nothing } from "../../../ui/states.js";
import { Pages } from "../../../ui/table.js";
import { toast } from "../../../ui/toast.js";
import { classes, html, useEffect, useRef, useState } from "../../../view.js";
import { amountOf, mainWords, sumOf } from "../reasons.js";
import { Send } from "./batches.js";
import { shownOf, useChoice } from "./choice.js";
import { Look } from "./look.js";
import { reviewAll } from "./reviews.js";
import { Sheet } from "./sheet.js";

/** @typedef {import("../reasons.js").Row} Row */
/** @typedef {{sheet: any, rows: Row[], query: any, ask: (next: any) => void, changed: () => void}} Props */

/** The action of each stage. @type {Record<string, {title: string, verb: string}>} */
export const stages = { pending_review: { title: "To review", verb: "review" },
  reviewed: { title: "Reviewed, ready to send", verb: "send" } };

/** @type {Record<string, string>} */
const nothing = { pending_review: "No entries to review", reviewed: "No reviewed entries" };

/** @param {Props} props rows are those of the stage */
export function Work({ sheet, rows, query, ask, changed }) {
  const { title, verb } = stages[query.stage];
  const found = shownOf(rows, query);
  const { lines, shown } = found;
  const { chosen, toggle, toggleAll } = useChoice(shown, lines);
  const [open, show] = useState("");
  const [looking, look] = useState(/** @type {string | null} */ (null));
  const { at, here, focus, box } = useCursor(lines, looking === null);
  const { busy, review } = useReview(changed);
  const reviews = can("manageBilling") && query.stage === "pending_review";
  const current = lines.find((row) => row.entry_id === here);
  const begin = () => look((at === here ? current : lines.find((row) => row.ready) ?? current)?.entry_id ?? null);
  useKeys({
    x: { does: "Select or deselect", act: () => current?.ready && toggle(current) },
    o: { does: "Show what blocks it", act: () => show(open === here ? "" : here) },
    Enter: { does: "Review one by one", act: begin },
  }, { while: looking === null });
  useSaving(() => reviews && looking === null && review(chosen));

  return html`<section ref=${box}>
    <${Head} title=${title} sheet=${sheet} rows=${rows} found=${found} query=${query} ask=${ask} />
    ${sheet.left_out > 0 && html`<p class="notice warning">
      ${number(sheet.left_out)} more entries of this month are not listed: review these first.</p>`}
    ${lines.length === 0 ? html`<${Nothing} title=${rows.length === 0 ? nothing[query.stage] : "No entries match"} />`
      : html`<${Sheet} rows=${lines} chosen=${new Set(chosen.map((row) => row.entry_id))} open=${open} at=${here} looked=${looking}
        caption=${title} verb=${verb}
        toggle=${toggle} toggleAll=${toggleAll}
        show=${(/** @type {Row} */ row) => show(open === row.entry_id ? "" : row.entry_id)}
          focus=${(/** @type {Row} */ row) => focus(row.entry_id)} />`}
    ${shown.length > found.perPage && html`<${Pages} page=${found.page} count=${shown.length} size=${found.perPage}
      turn=${(n) => ask({ page: n })} of=${title} />`}
    <footer class="foot-of-sheet">
      <p role="status"><strong>${number(chosen.length)} ${query.stage === "reviewed" ? "selected" : "ready"}, ${money(sumOf(chosen,
        amountOf))}</strong>
        ${reviews && html` <small>Blocked entries cannot be selected. Your name is recorded on each review.</small>`}</p>
      <div class="actions">
        ${lines.length > 0 && html`<button type="button" onClick=${begin}>Review one by one <kbd>↵</kbd></button>`}
        ${reviews && html`<button type="button" class="main" disabled=${busy || chosen.length === 0} onClick=${() => review(chosen)}>
          ${busy ? "One moment" : `Review ${number(chosen.length)}`} <kbd>${command}↵</kbd></button>`}
        ${query.stage === "reviewed" && html`<${Send} sends=${sheet.sends_claims} rows=${chosen} changed=${changed} />`}</div></footer>
    ${looking !== null && html`<${Look} rows=${shown} at=${looking} turn=${look} close=${() => { look(null); focus(looking); }}
      reviews=${reviews}
      review=${(/** @type {Row} */ row) => review([row])} />`}
  </section>`;
}

const command = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl ";

/** Moves in the rows with J and K; here is the row that keys act on. @param {Row[]} lines @param {boolean} acts */
function useCursor(lines, acts) {
  const [at, focus] = useState("");
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const here = lines.some((row) => row.entry_id === at) ? at : lines[0]?.entry_id ?? "";
  const move = (/** @type {number} */ by) => {
    const next = lines[Math.max(0, Math.min(lines.length - 1, lines.findIndex((row) => row.entry_id === here) + by))];
    if (next) {
      focus(next.entry_id);
      /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(`[data-key="${next.entry_id}"]`))?.focus();
    }
  };
  useKeys({
    j: { does: "Next entry", act: () => move(1) }, k: { does: "Previous entry", act: () => move(-1) },
    ArrowDown: () => move(1), ArrowUp: () => move(-1),
  }, { while: acts });
  return { at, here, focus, box };
}

/** Reviews entries, one call at a time; review returns whether all were reviewed. @param {() => void} changed */
function useReview(changed) {
  const [busy, work] = useState(false);
  const review = async (/** @type {Row[]} */ list) => {
    if (busy || list.length === 0) {
      return false;
    }
    work(true);
    try {
      return (await reviewAll(list, changed)) === list.length;
    } catch (error) {
      toast(asProblem(error).message, "problem");
      return false;
    } finally {
      work(false);
    }
  };
  return { busy, review };
}

/** Ctrl or ⌘ with Enter, as in every form. @param {() => unknown} act */
function useSaving(act) {
  const latest = useRef(act);
  latest.current = act;
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
}

/** @param {{title: string, sheet: any, rows: Row[], found: ReturnType<typeof shownOf>, query: any, ask: (next: any) => void}} props */
function Head({ title, sheet, rows, found, query, ask }) {
  const chips = /** @type {[string, string, number, string][]} */ ([
    ["all", "All", found.narrowed.length, ""], ["ready", "Ready", found.ready.length, "good"], ["blocked", "Blocked", found.held.length,
      "warning"],
  ]);
  const choices = (/** @type {(row: Row) => string} */ of) =>
    [...new Set(rows.map(of))].sort().map((value) => /** @type {[string, string]} */ ([value, value]));
  return html`<header class="head-of-sheet"><h2>${title}</h2>
    <div class="chips" role="group" aria-label="Which entries">${chips.map(([key, name, count, tone]) => html`<button key=${key}
      type="button"
      aria-pressed=${query.show === key ? "true" : "false"} onClick=${() => ask({ show: key, why: "" })}>
      ${tone && html`<span class=${classes("mark", tone)} aria-hidden="true">${tone === "good" ? "✓"
        : "◆"}</span> `}${name} <strong>${number(count)}</strong></button>`)}</div>
    ${query.why && html`<button type="button" class="chip" aria-label=${`Remove filter: ${mainWords(query.why)}`}
      onClick=${() => ask({ why: "", show: "all" })}>${mainWords(query.why)} ✕</button>`}
    <div class="narrow">
      <${Field} label="Code" name="code" kind="select" value=${query.code} options=${[["", "All codes"], ...choices((row) => row.cpt_code)]}
        onChange=${(event) => ask({ code: event.target.value })} />
      <${Field} label="Payer" name="payer" kind="select" value=${query.payer} options=${[["", "All payers"],
        ...choices((row) => row.payer)]}
        onChange=${(event) => ask({ payer: event.target.value })} />
      <small class="checked">Facts checked ${clock(sheet.checked_at)}</small></div></header>`;
}
