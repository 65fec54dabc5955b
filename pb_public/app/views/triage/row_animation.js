// Animates changes: rows slide to their new position, and changed rows are highlighted briefly.
import { useEffect, useLayoutEffect, useRef, useState } from "../../view.js";

const highlightTime = 1500; // milliseconds

/** The ids of rows that changed, for a moment. A new page highlights none. @param {import("./order.js").Row[] | undefined} rows
 *  @param {string} page */
export function useChangedRows(rows, page) {
  const before = useRef({ page: "", states: /** @type {Map<string, string>} */ (new Map()) });
  const [changed, setChanged] = useState(/** @type {Set<string>} */ (new Set()));
  useEffect(() => {
    if (!rows) {
      return;
    }
    const states = new Map(rows.map((row) =>
      [row.patient_id, `${row.risk_score} ${row.unacknowledged_alerts} ${row.active_escalations} ${row.last_reading_at}`]));
    const earlier = before.current;
    before.current = { page, states };
    const news = earlier.page === page ? [...states].filter(([id, state]) => earlier.states.get(id) !== state).map(([id]) => id) : [];
    if (news.length === 0) {
      return;
    }
    setChanged(new Set(news));
    const timer = setTimeout(() => setChanged(new Set()), highlightTime);
    return () => clearTimeout(timer);
  }, [rows]);
  return changed;
}

/** Slides rows from their old to their new position, and keeps the focus. @param {{current: HTMLElement | null}} list
 *  @param {any[]} rows */
export function useSlide(list, rows) {
  const tops = useRef(/** @type {Map<string, number>} */ (new Map()));
  const held = /** @type {HTMLElement | null} */ (list.current?.contains(document.activeElement) ? document.activeElement : null);
  useLayoutEffect(() => {
    const now = new Map();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const item of /** @type {HTMLElement[]} */ ([...(list.current?.children ?? [])])) {
      now.set(item.dataset.id ?? "", item.offsetTop);
    }
    for (const item of still ? [] : /** @type {HTMLElement[]} */ ([...(list.current?.children ?? [])])) {
      const top = now.get(item.dataset.id);
      const by = (tops.current.get(item.dataset.id ?? "") ?? top) - top;
      if (by !== 0) {
        item.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 350, easing: "ease-out" });
      }
    }
    tops.current = now;
    if (held?.isConnected && document.activeElement !== held) {
      held.focus({ preventScroll: true });
    }
  }, [rows]);
}
