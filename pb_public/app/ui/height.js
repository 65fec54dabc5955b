// How high something is that stays where it is, for what must not lie behind it.
import { useEffect, useRef } from "../view.js";

/** Keeps a property of the document as high as an element. @param {`--${string}`} property @returns the ref of the element */
export function useHeight(property) {
  const of = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const watch = new ResizeObserver(() => document.documentElement.style.setProperty(property, `${of.current?.offsetHeight ?? 0}px`));
    of.current && watch.observe(of.current);
    return () => watch.disconnect();
  }, []);
  return of;
}
