// Signs the user out after fifteen minutes without a key, a click or a touch in any tab. A warning shows two minutes before.
// Source: 45 CFR 164.312(a)(2)(iii); WCAG 2.2, 2.2.1.
import { me } from "./session.js";
import { activity } from "./session_sharing.js";
import { signOut } from "./sign_on.js";
import { effect, signal } from "./view.js";

const limit = 15 * 60_000;
const warning = 2 * 60_000;
const activityEvents = ["pointerdown", "keydown", "wheel", "touchstart"];
let last = Date.now();
let lastShared = 0;

/** Seconds until the session ends, while the warning is shown; otherwise 0. */
export const secondsLeft = signal(0);

/** Records activity and extends the session. */
export function extendSession() {
  last = Date.now();
  secondsLeft.value = 0;
  if (last - lastShared > 5_000) { // at most every five seconds
    lastShared = last;
    activity.share(last);
  }
}

/** Ignores events on the warning itself, which its button handles: a warning removed at pointerdown would pass the click to the page below.
 *  @param {Event} event */
const onActivity = ({ target }) => { if (!(target instanceof Element && target.closest(".ending"))) { extendSession(); } };

function checkIdle() {
  const left = last + limit - Date.now();
  if (!me.peek() || left > warning) {
    secondsLeft.value = 0;
  } else if (left > 0) {
    secondsLeft.value = Math.ceil(left / 1000);
  } else {
    secondsLeft.value = 0;
    void signOut("You were signed out after 15 minutes without activity.", { back: true });
  }
}

export function watchIdle() {
  for (const sign of activityEvents) {
    addEventListener(sign, onActivity, { passive: true, capture: true });
  }
  activity.onActivity = (at) => { last = Math.max(last, Math.min(at, Date.now())); checkIdle(); };
  effect(() => {
    if (me.value) {
      last = Date.now();
    }
  });
  addEventListener("visibilitychange", checkIdle); // timers of a background page run less often
  setInterval(checkIdle, 1_000);
}
