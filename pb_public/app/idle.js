// Signs off after fifteen minutes without a key, a click or a touch. Source: 45 CFR 164.312(a)(2)(iii).
import { me } from "./session.js";
import { signOff } from "./sign_on.js";
import { effect } from "./view.js";

const limit = 15 * 60_000;
const signs = ["pointerdown", "keydown", "wheel", "touchstart"];

export function watchIdle() {
  let last = Date.now();
  for (const sign of signs) {
    addEventListener(sign, () => { last = Date.now(); }, { passive: true, capture: true });
  }
  effect(() => {
    if (me.value) {
      last = Date.now();
    }
  });
  setInterval(() => {
    if (me.value && Date.now() - last >= limit) {
      void signOff("You were signed off after 15 minutes without activity.");
    }
  }, 5_000);
}
