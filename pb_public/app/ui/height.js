// Publishes the height of fixed elements as CSS properties, so that they cover nothing.
import { useEffect, useRef } from "../view.js";

/** Sets a CSS property to the height of an element. @param {`--${string}`} property @returns the ref of the element */
export function useHeight(property) {
  const of = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const watch = new ResizeObserver(() => document.documentElement.style.setProperty(property, `${of.current?.offsetHeight ?? 0}px`));
    of.current && watch.observe(of.current);
    return () => watch.disconnect();
  }, []);
  return of;
}
