// Holds the order of the list while it is in use, so that no row moves under the pointer.
import { useCallback, useEffect, useRef, useState } from "../../view.js";

const idle = 60_000; // milliseconds without input after which the list is not in use

/**
 * @param {{current: import("./live.js").Hold}} hold @param {boolean} open whether the side panel is open
 * @returns {{rest: (why: "pointer" | "focus", on: boolean) => void, resting: boolean, done: () => void}} done resumes the order
 *  until the next input
 */
export function useRest(hold, open) {
  const why = useRef({ pointer: false, focus: false, open: false });
  const [resting, set] = useState(false);
  const timer = useRef(0);
  const look = useCallback(() => {
    const { pointer, focus, open: beside } = why.current;
    const on = pointer || focus || beside;
    if (on === hold.current.still) {
      return;
    }
    set(on);
    if (on) {
      hold.current.still = true;
    } else {
      hold.current.release();
    }
  }, []);
  const done = useCallback(() => {
    set(false);
    hold.current.release();
  }, []);
  const rest = useCallback((/** @type {"pointer" | "focus"} */ of, /** @type {boolean} */ on) => {
    why.current[of] = on;
    queueMicrotask(look); // focus leaves one row before it enters the next
  }, []);
  useEffect(() => {
    why.current.open = open;
    look();
  }, [open]);
  useEffect(() => {
    const moved = () => {
      clearTimeout(timer.current);
      timer.current = setTimeout(done, idle);
      look();
    };
    const signs = ["keydown", "pointermove", "pointerdown"];
    signs.forEach((sign) => addEventListener(sign, moved, { passive: true }));
    return () => { clearTimeout(timer.current); signs.forEach((sign) => removeEventListener(sign, moved)); };
  }, []);
  return { rest, resting, done };
}
