// The month's work: select entries, review them one by one or together, and send them.
import { can } from "../../../permissions.js";
import { isDialogOpen, useKeys } from "../../../keys.js";
import { Field } from "../../../ui/form.js";
import { clock, money, number } from "../../../ui/format.js";
import { asProblem, EmptyState } from "../../../ui/states.js";
import { Pages } from "../../../ui/table.js";
import { toast } from "../../../ui/toast.js";
import { classes, html, useEffect, useRef, useState } from "../../../view.js";
import { amountOf, mainText, sumOf } from "../blocking_reasons.js";
import { Send } from "./batches.js";
import { shownOf, useChoice } from "./selection.js";
import { ReviewPanel } from "./review_panel.js";
import { reviewAll } from "./bulk_review.js";
import { EntryTable } from "./entry_table.js";

/** @typedef {import("../blocking_reasons.js").Row} Row */
/** @typedef {{sheet: any, rows: Row[], query: any, setQuery: (next: any) => void, changed: () => void}} Props */

/** The action of each stage. @type {Record<string, {title: string, verb: string}>} */
export const stages = { pending_review: { title: "To review", verb: "review" },
  reviewed: { title: "Reviewed, ready to send", verb: "send" } };

/** @type {Record<string, string>} */
const nothing = { pending_review: "No entries to review", reviewed: "No reviewed entries" };

/** @param {Props} props rows are those of the stage */
export function Worklist({ sheet, rows, query, setQuery, changed }) {
  const { title, verb } = stages[query.stage];
  const found = shownOf(rows, query);
  const { lines, shown } = found;
  const { chosen, toggle, toggleAll } = useChoice(shown, lines);
  const [open, setOpen] = useState("");
  const [panelId, setPanelId] = useState(/** @type {string | null} */ (null));
  const { at, here, focus, box } = useCursor(lines, panelId === null);
  const { busy, review } = useReview(changed);
  const reviews = can("manageBilling") && query.stage === "pending_review";
  const current = lines.find((row) => row.entry_id === here);
  const begin = () => setPanelId((at === here ? current : lines.find((row) => row.ready) ?? current)?.entry_id ?? null);
  useKeys({
    x: { label: "Select or deselect", act: () => current?.ready && toggle(current) },
    o: { label: "Show what blocks it", act: () => setOpen(open === here ? "" : here) },
    Enter: { label: "Review one by one", act: begin },
  }, { active: panelId === null });
  useSaveShortcut(() => reviews && panelId === null && review(chosen));

  return html`<section ref=${box}>
    <${Head} title=${title} sheet=${sheet} rows=${rows} found=${found} query=${query} setQuery=${setQuery} />
    ${sheet.left_out > 0 && html`<p class="notice warning">
      ${number(sheet.left_out)} more entries of this month are not listed: review these first.</p>`}
    ${lines.length === 0 ? html`<${EmptyState} title=${rows.length === 0 ? nothing[query.stage] : "No entries match"} />`
      : html`<${EntryTable} rows=${lines} chosen=${new Set(chosen.map((row) => row.entry_id))} open=${open} at=${here} looked=${panelId}
        caption=${title} verb=${verb}
        toggle=${toggle} toggleAll=${toggleAll}
        show=${(/** @type {Row} */ row) => setOpen(open === row.entry_id ? "" : row.entry_id)}
          focus=${(/** @type {Row} */ row) => focus(row.entry_id)} />`}
    ${shown.length > found.perPage && html`<${Pages} page=${found.page} count=${shown.length} size=${found.perPage}
      turn=${(n) => setQuery({ page: n })} of=${title} />`}
    <footer class="foot-of-sheet">
      <p role="status"><strong>${number(chosen.length)} ${query.stage === "reviewed" ? "selected" : "ready"}, ${money(sumOf(chosen,
        amountOf))}</strong>
        ${reviews && html` <small>Blocked entries cannot be selected. Your name is recorded on each review.</small>`}</p>
      <div class="actions">
        ${lines.length > 0 && html`<button type="button" onClick=${begin}>Review one by one <kbd>↵</kbd></button>`}
        ${reviews && html`<button type="button" class="main" disabled=${busy || chosen.length === 0} onClick=${() => review(chosen)}>
          ${busy ? "One moment" : `Review ${number(chosen.length)}`} <kbd>${command}↵</kbd></button>`}
        ${query.stage === "reviewed" && html`<${Send} sends=${sheet.sends_claims} rows=${chosen} changed=${changed} />`}</div></footer>
    ${panelId !== null && html`<${ReviewPanel} rows=${shown} at=${panelId} turn=${setPanelId}
      close=${() => { setPanelId(null); focus(panelId); }}
      reviews=${reviews}
      review=${(/** @type {Row} */ row) => review([row])} />`}
  </section>`;
}

const command = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl ";

/** Moves in the rows with J and K; here is the row that keys act on. @param {Row[]} lines @param {boolean} acts */
function useCursor(lines, acts) {
  const [focusedId, setFocusedId] = useState("");
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const here = lines.some((row) => row.entry_id === focusedId) ? focusedId : lines[0]?.entry_id ?? "";
  const move = (/** @type {number} */ by) => {
    const next = lines[Math.max(0, Math.min(lines.length - 1, lines.findIndex((row) => row.entry_id === here) + by))];
    if (next) {
      setFocusedId(next.entry_id);
      /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(`[data-key="${next.entry_id}"]`))?.focus();
    }
  };
  useKeys({
    j: { label: "Next entry", act: () => move(1) }, k: { label: "Previous entry", act: () => move(-1) },
    ArrowDown: () => move(1), ArrowUp: () => move(-1),
  }, { active: acts });
  return { at: focusedId, here, focus: setFocusedId, box };
}

/** Reviews entries, one call at a time; review returns whether all were reviewed. @param {() => void} changed */
function useReview(changed) {
  const [isBusy, setBusy] = useState(false);
  const review = async (/** @type {Row[]} */ list) => {
    if (isBusy || list.length === 0) {
      return false;
    }
    setBusy(true);
    try {
      return (await reviewAll(list, changed)) === list.length;
    } catch (error) {
      toast(asProblem(error).message, "problem");
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy: isBusy, review };
}

/** Ctrl or ⌘ with Enter, as in every form. @param {() => unknown} act */
function useSaveShortcut(act) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.repeat && !isDialogOpen()) {
        event.preventDefault();
        latest.current();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** @param {{title: string, sheet: any, rows: Row[], found: ReturnType<typeof shownOf>, query: any, setQuery: (next: any) => void}} props */
function Head({ title, sheet, rows, found, query, setQuery }) {
  const chips = /** @type {[string, string, number, string][]} */ ([
    ["all", "All", found.narrowed.length, ""], ["ready", "Ready", found.ready.length, "good"], ["blocked", "Blocked", found.held.length,
      "warning"],
  ]);
  const choices = (/** @type {(row: Row) => string} */ of) =>
    [...new Set(rows.map(of))].sort().map((value) => /** @type {[string, string]} */ ([value, value]));
  return html`<header class="head-of-sheet"><h2>${title}</h2>
    <div class="chips" role="group" aria-label="Which entries">${chips.map(([key, name, count, tone]) => html`<button key=${key}
      type="button"
      aria-pressed=${query.show === key ? "true" : "false"} onClick=${() => setQuery({ show: key, why: "" })}>
      ${tone && html`<span class=${classes("mark", tone)} aria-hidden="true">${tone === "good" ? "✓"
        : "◆"}</span> `}${name} <strong>${number(count)}</strong></button>`)}</div>
    ${query.why && html`<button type="button" class="chip" aria-label=${`Remove filter: ${mainText(query.why)}`}
      onClick=${() => setQuery({ why: "", show: "all" })}>${mainText(query.why)} ✕</button>`}
    <div class="narrow">
      <${Field} label="Code" name="code" kind="select" value=${query.code} options=${[["", "All codes"], ...choices((row) => row.cpt_code)]}
        onChange=${(event) => setQuery({ code: event.target.value })} />
      <${Field} label="Payer" name="payer" kind="select" value=${query.payer} options=${[["", "All payers"],
        ...choices((row) => row.payer)]}
        onChange=${(event) => setQuery({ payer: event.target.value })} />
      <small class="checked">Facts checked ${clock(sheet.checked_at)}</small></div></header>`;
}
