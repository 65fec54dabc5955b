// The order of the list rests while somebody works with it: nobody acts on a patient who has just moved under the pointer.
import { useCallback, useEffect, useRef, useState } from "../../view.js";

const idle = 60_000; // milliseconds without a key or a move, after which nobody works with it

/**
 * @param {{current: import("./live.js").Hold}} hold @param {boolean} open whether a patient stands at the side
 * @returns {{rest: (why: "pointer" | "focus", on: boolean) => void, resting: boolean, done: () => void}} done lets the order go on,
 *  until the next move
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
    queueMicrotask(look); // the focus leaves one row before it is in the next
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
