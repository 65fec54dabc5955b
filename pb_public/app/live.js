// The live triage topic. When the stream is disconnected the console shows it, and listeners load their data again after a reconnect,
// because missed messages are not repeated.
import { follow } from "./events.js";
import { accessToken, me, renew, renewals } from "./session.js";
import { effect, signal } from "./view.js";

/** @typedef {{type: "patient"|"stats"|"alert"|"escalation", seq: number, at: string, data: any}} Message */

const readers = ["admin", "clinical_manager", "provider", "nurse", "ma"];
const renewalTime = 13 * 60_000; // before the access token, and the stream with it, expires

/** "off", "connecting", "live" or "cut". */
export const stream = signal("off");

/** @type {Set<{type: string, told: (message: Message) => void}>} */
const listeners = new Set();
/** @type {Set<() => void>} */
const refetchers = new Set();

/** Calls handler for each message of a type until the returned function is called. @param {Message["type"]} type
 *  @param {(message: Message) => void} told */
export function listen(type, told) {
  const listener = { type, told };
  listeners.add(listener);
  return () => { listeners.delete(listener); };
}

/** Calls refetch whenever messages may have been missed. @param {() => void} refetch */
export function onGap(refetch) {
  refetchers.add(refetch);
  return () => { refetchers.delete(refetch); };
}

/** Ends the current subscription. */
let unfollow = () => {};
let trying = false; // the stream reconnects automatically

/** Opens the stream, or reopens it with a fresh token. */
function open() {
  unfollow();
  stream.value = stream.peek() === "cut" ? "cut" : "connecting"; // peek: the caller's effect must not depend on what is set here
  trying = false;
  unfollow = follow("triage", accessToken(), { told: tell, up: caughtUp, down: (again) => { stream.value = "cut"; trying = again; } });
}

/** @param {Message} message */
function tell(message) {
  for (const { type, told } of listeners) {
    if (type === message.type) {
      told(message);
    }
  }
}

function caughtUp() {
  stream.value = "live";
  refetchers.forEach((refetch) => refetch());
}

function close() {
  stream.value = "off";
  unfollow();
}

export function keepLive() {
  effect(() => {
    const listening = me.value !== null && readers.includes(me.value.role);
    void renewals.value; // a fresh token needs a fresh subscription
    if (listening) {
      open();
    } else {
      close();
    }
  });
  addEventListener("offline", () => { // a silent stream does not detect this
    if (stream.peek() !== "off") {
      stream.value = "cut";
      trying = true;
    }
  });
  addEventListener("online", () => me.peek() && stream.peek() === "cut" && open());
  setInterval(() => { // a stream that was refused waits for a fresh token
    if (stream.value === "cut" && me.value && !trying) {
      void renew().catch(() => false).then((fresh) => fresh ? undefined : open());
    }
  }, 10_000);
  setInterval(() => {
    if (stream.value === "live") {
      void renew().catch(() => false);
    }
  }, renewalTime);
}
