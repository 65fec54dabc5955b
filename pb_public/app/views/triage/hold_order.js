// Holds the order of the list while it is in use, so that no row moves under the pointer.
import { useCallback, useEffect, useRef, useState } from "../../view.js";

const idleTime = 60_000; // milliseconds without input after which the list is not in use

/**
 * @param {{current: import("./live.js").Hold}} hold @param {boolean} open whether the side panel is open
 * @returns {{rest: (why: "pointer" | "focus", on: boolean) => void, resting: boolean, done: () => void}} done resumes the order
 *  until the next input
 */
export function useHeldOrder(hold, open) {
  const reasons = useRef({ pointer: false, focus: false, open: false });
  const [isHeld, setHeld] = useState(false);
  const timer = useRef(0);
  const update = useCallback(() => {
    const { pointer, focus, open: isPanelOpen } = reasons.current;
    const on = pointer || focus || isPanelOpen;
    if (on === hold.current.still) {
      return;
    }
    setHeld(on);
    if (on) {
      hold.current.still = true;
    } else {
      hold.current.release();
    }
  }, []);
  const done = useCallback(() => {
    setHeld(false);
    hold.current.release();
  }, []);
  const rest = useCallback((/** @type {"pointer" | "focus"} */ of, /** @type {boolean} */ on) => {
    reasons.current[of] = on;
    queueMicrotask(update); // focus leaves one row before it enters the next
  }, []);
  useEffect(() => {
    reasons.current.open = open;
    update();
  }, [open]);
  useEffect(() => {
    const moved = () => {
      clearTimeout(timer.current);
      timer.current = setTimeout(done, idleTime);
      update();
    };
    const signs = ["keydown", "pointermove", "pointerdown"];
    signs.forEach((sign) => addEventListener(sign, moved, { passive: true }));
    return () => { clearTimeout(timer.current); signs.forEach((sign) => removeEventListener(sign, moved)); };
  }, []);
  return { rest, resting: isHeld, done };
}
