// What a touched push leads to. Its address names the message by number and nothing else; where that is, is asked after signing in.
import { me } from "./session.js";
import { effect, signal } from "./view.js";
import { openMessage } from "./views/inbox/open.js";

/** @param {string} address */
const numberIn = (address) => Number(new URL(address, location.origin).searchParams.get("notification")) || null;

const wanted = signal(numberIn(location.href)); // read at once: the address is cleaned when the page is drawn

export function followPushes() {
  navigator.serviceWorker?.addEventListener("message", ({ data }) => {
    if (typeof data?.open === "string") {
      wanted.value = numberIn(data.open);
    }
  });
  effect(() => {
    const id = wanted.value;
    if (me.value && !me.value.must_change_password && id !== null) {
      wanted.value = null;
      void openMessage(id);
    }
  });
}
