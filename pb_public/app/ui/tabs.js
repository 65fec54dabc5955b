// Tabs within a view. The open tab is in the address, so that going back restores it.
import { updateQuery, place } from "../router.js";
import { classes, html, useEffect, useId, useRef } from "../view.js";

/** group is the heading over a tab and those that follow. @typedef {{key: string, name: string, group?: string, show: () => any}} Tab */

/** Scrolls a row that is wider than the window to its selected item, without moving the page. @param {any} choice
 *  @returns the ref of the row */
export function useInSight(choice) {
  const row = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const chosen = /** @type {HTMLElement | null | undefined} */ (row.current?.querySelector("[aria-current], [aria-selected=true]"));
    if (row.current && chosen) {
      row.current.scrollLeft = chosen.offsetLeft - (row.current.clientWidth - chosen.offsetWidth) / 2;
    }
  }, [choice]);
  return row;
}

/** Tabs in a row, or with groups in a column. @param {{label: string, tabs: (Tab | false | null | undefined | "")[]}} props false for a tab
 *  that the user's role may not see */
export function Tabs({ label, tabs }) {
  const id = useId();
  const shown = /** @type {Tab[]} */ (tabs.filter(Boolean));
  const wanted = place.value.query.tab ?? place.value.about.tab;
  const open = shown.find((tab) => tab.key === wanted) ?? shown[0];
  const row = useInSight(open.key);
  const others = () => Object.fromEntries(Object.keys(place.value.query).map((name) => [name, undefined])); // the query of the previous tab
  const choose = (/** @type {Tab} */ tab) => tab !== open && updateQuery({ ...others(), tab: tab.key });
  const step = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      const next = shown[(shown.indexOf(open) + by + shown.length) % shown.length];
      choose(next);
      document.getElementById(`${id}-${next.key}`)?.focus();
    }
  };
  const grouped = shown.some((tab) => tab.group);
  const isFirst = (/** @type {Tab} */ tab, /** @type {number} */ i) => tab.group && tab.group !== shown[i - 1]?.group;
  return html`<div class=${classes(grouped && "with-rail")}><div class=${classes("tabs no-print", grouped && "rail")} role="tablist"
      aria-label=${label} aria-orientation=${grouped ? "vertical" : null} ref=${row} onKeyDown=${step}>
      ${shown.map((tab, i) => html`${isFirst(tab, i)
        && html`<span class="rail-group" aria-hidden="true">${tab.group}</span>`}<button
        key=${tab.key} id=${`${id}-${tab.key}`} role="tab" aria-selected=${tab === open ? "true"
        : "false"} aria-controls=${`${id}-panel`}
        tabindex=${tab === open ? 0 : -1} onClick=${() => choose(tab)}>${tab.name}</button>`)}
    </div>
    <div key=${open.key} id=${`${id}-panel`} role="tabpanel" aria-labelledby=${`${id}-${open.key}`}>${open.show()}</div></div>`;
}
