// Opens the message of a tapped push notification. The address holds only its number; its content is loaded after sign-in.
import { me } from "./session.js";
import { effect, signal } from "./view.js";
import { openMessage } from "./views/inbox/open.js";

/** @param {string} address */
const numberIn = (address) => Number(new URL(address, location.origin).searchParams.get("notification")) || null;

const wanted = signal(numberIn(location.href)); // read immediately: rendering clears the address

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
