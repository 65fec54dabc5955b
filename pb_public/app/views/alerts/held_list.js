// Holds the order of the list while it is in use: new rows wait until requested, and changed rows stay in place.
import { useCallback, useEffect, useRef, useState } from "../../view.js";

/** @typedef {import("./labels.js").Group} Group */
/**
 * @typedef {Group & {key: string, placed: string, gone?: boolean, deed?: string}} Row placed is the level under which the row is shown;
 *   gone: no longer in the query's results
 */
/** @typedef {{count: number, results: Group[], levels: Record<string, {groups: number, alerts: number, critical_alerts: number}>}} Page */

/** @param {Group} group */
export const keyOf = ({ patient_id, type }) => `${patient_id} ${type}`;

/** @param {Group} group @returns {Row} */
const row = (group) => ({ ...group, key: keyOf(group), placed: group.level });

/** The shown rows in their order, updated from the newest page. @param {Row[]} shown @param {Group[]} fresh @returns {Row[]} */
export function updateRows(shown, fresh) {
  const now = new Map(fresh.map((group) => [keyOf(group), group]));
  return shown.map((old) => {
    const group = now.get(old.key);
    return group ? { ...row(group), placed: old.placed } : { ...old, gone: true };
  });
}

/**
 * Counts rows that are not shown yet: new causes, and shown causes that turned critical.
 * @param {Row[]} shown
 * @param {Group[]} fresh
 */
export function countNew(shown, fresh) {
  const known = new Map(shown.map((one) => [one.key, one]));
  const news = fresh.filter((group) => {
    const old = known.get(keyOf(group));
    return !old || old.gone || (group.level === "critical" && old.placed !== "critical");
  });
  return { count: news.length, critical: news.filter(({ level }) => level === "critical").length };
}

/**
 * The shown rows of a page that is reloaded repeatedly. While held, no row moves.
 * @param {Page | null} page the newest @param {string} queryKey the query of the page; a different query is shown immediately @param
 * {boolean} busy holds the order, too
 */
export function useHeld(page, queryKey, busy) {
  const [shown, setShown] = useState({ queryKey: "", rows: /** @type {Row[]} */ ([]) });
  const [waiting, setWaiting] = useState({ count: 0, critical: 0 });
  const hold = useRef({ pointer: false, focus: false, busy: false });
  const latest = useRef({ page, queryKey });
  latest.current = { page, queryKey };
  hold.current.busy = busy;
  const held = () => hold.current.pointer || hold.current.focus || hold.current.busy;
  const renew = useCallback(() => {
    const { page: fresh, queryKey: of } = latest.current;
    if (fresh) {
      setShown({ queryKey: of, rows: fresh.results.map(row) });
      setWaiting({ count: 0, critical: 0 });
    }
  }, []);
  useEffect(() => {
    if (!page) {
      return;
    }
    if (shown.queryKey !== queryKey || !held() || shown.rows.length === 0) {
      renew();
    } else {
      setShown((was) => ({ ...was, rows: updateRows(was.rows, page.results) }));
      setWaiting(countNew(shown.rows, page.results));
    }
  }, [page]);
  const resumeIfIdle = () => {
    if (!held()) {
      renew();
    }
  };
  useEffect(() => {
    if (!busy) {
      resumeIfIdle();
    }
  }, [busy]);
  const guards = {
    onPointerEnter: (/** @type {PointerEvent} */ event) => { hold.current.pointer = event.pointerType === "mouse"; },
    onPointerLeave: () => { hold.current.pointer = false; resumeIfIdle(); },
    onFocusIn: () => { hold.current.focus = true; },
    onFocusOut: (/** @type {FocusEvent} */ event) => {
      if (!(/** @type {HTMLElement} */ (event.currentTarget)).contains(/** @type {Node | null} */ (event.relatedTarget))) {
        hold.current.focus = false;
        setTimeout(resumeIfIdle);
      }
    },
  };
  const mark = (/** @type {number[]} */ ids, /** @type {string} */ deed) => setShown((was) => ({
    ...was, rows: was.rows.map((one) => (one.alert_ids.some((id) => ids.includes(id)) ? { ...one, gone: deed !== "", deed } : one)),
  }));
  return { rows: shown.queryKey === queryKey ? shown.rows : null, waiting, renew, guards, mark };
}
