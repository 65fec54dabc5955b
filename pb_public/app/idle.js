// Signs the user out after fifteen minutes without a key, a click or a touch in any tab. A warning shows two minutes before.
// Source: 45 CFR 164.312(a)(2)(iii); WCAG 2.2, 2.2.1.
import { me } from "./session.js";
import { activity } from "./sharing.js";
import { signOff } from "./sign_on.js";
import { effect, signal } from "./view.js";

const limit = 15 * 60_000;
const warning = 2 * 60_000;
const signs = ["pointerdown", "keydown", "wheel", "touchstart"];
let last = Date.now();
let told = 0;

/** Seconds until the session ends, while the warning is shown; otherwise 0. */
export const endsIn = signal(0);

/** Records activity and extends the session. */
export function stay() {
  last = Date.now();
  endsIn.value = 0;
  if (last - told > 5_000) { // at most every five seconds
    told = last;
    activity.tell(last);
  }
}

/** Ignores events on the warning itself, which its button handles: a warning removed at pointerdown would pass the click to the page below.
 *  @param {Event} event */
const touched = ({ target }) => { if (!(target instanceof Element && target.closest(".ending"))) { stay(); } };

function look() {
  const left = last + limit - Date.now();
  if (!me.peek() || left > warning) {
    endsIn.value = 0;
  } else if (left > 0) {
    endsIn.value = Math.ceil(left / 1000);
  } else {
    endsIn.value = 0;
    void signOff("You were signed out after 15 minutes without activity.", { back: true });
  }
}

export function watchIdle() {
  for (const sign of signs) {
    addEventListener(sign, touched, { passive: true, capture: true });
  }
  activity.heard = (at) => { last = Math.max(last, Math.min(at, Date.now())); look(); };
  effect(() => {
    if (me.value) {
      last = Date.now();
    }
  });
  addEventListener("visibilitychange", look); // timers of a background page run less often
  setInterval(look, 1_000);
}
