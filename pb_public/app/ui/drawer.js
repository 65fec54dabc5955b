// The side panel of a list, with one row's details. The focus stays in the list, and J and K continue to move in it.
import { useKeys } from "../keys.js";
import { html, useEffect, useRef } from "../view.js";

let open = 0;

/**
 * Shown while a row is chosen: `${chosen && html`<${Drawer} label=${name} close=${none}>…</${Drawer}>`}`. Escape closes it. It takes no
 * focus
 * itself; if the user moved the focus into it, closing returns the focus. On a phone it covers the page. head is at the top next to the
 * close button; foot stays visible at the bottom.
 * @param {{label: string, close: () => void, head?: any, foot?: any, children?: any}} props
 */
export function Drawer({ label, close, head, foot, children }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const from = useRef(/** @type {Element | null} */ (null));
  useKeys({ Escape: { label: "Close the panel", act: close } });
  useEffect(() => {
    const came = (/** @type {FocusEvent} */ event) => {
      if (event.relatedTarget instanceof Element && !box.current?.contains(event.relatedTarget)) {
        from.current = event.relatedTarget;
      }
    };
    const node = box.current;
    node?.addEventListener("focusin", came);
    open++;
    document.documentElement.classList.add("with-drawer");
    return () => {
      open--;
      document.documentElement.classList.toggle("with-drawer", open > 0);
      if (node?.contains(document.activeElement) || document.activeElement === document.body) {
        /** @type {HTMLElement | null} */ (from.current)?.focus();
      }
    };
  }, []);
  return html`<aside class="drawer no-print" aria-label=${label} ref=${box}>
    <header><div class="drawer-head">${head}</div><button class="quiet" aria-label="Close the panel" onClick=${close}>×</button></header>
    <div class="drawer-body" tabindex="0" role="region" aria-label=${label}>${children}</div>
    ${foot && html`<footer>${foot}</footer>`}
  </aside>`;
}
