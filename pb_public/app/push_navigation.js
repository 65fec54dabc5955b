// Opens the message of a tapped push notification. The address holds only its number; its content is loaded after sign-in.
import { me } from "./session.js";
import { effect, signal } from "./view.js";
import { openMessage } from "./views/inbox/open_message.js";

/** @param {string} address */
const notificationId = (address) => Number(new URL(address, location.origin).searchParams.get("notification")) || null;

const requestedId = signal(notificationId(location.href)); // read immediately: rendering clears the address

export function followPushes() {
  navigator.serviceWorker?.addEventListener("message", ({ data }) => {
    if (typeof data?.open === "string") {
      requestedId.value = notificationId(data.open);
    }
  });
  effect(() => {
    const id = requestedId.value;
    if (me.value && !me.value.must_change_password && id !== null) {
      requestedId.value = null;
      void openMessage(id);
    }
  });
}
