// The live triage topic: what changes is told as it happens. When the stream is cut the console says so, and whoever
// listens fetches anew once it is back, because what was missed is not repeated.
import { follow } from "./events.js";
import { accessToken, me, renew, renewals } from "./session.js";
import { effect, signal } from "./view.js";

/** @typedef {{type: "patient"|"stats"|"alert"|"escalation", seq: number, at: string, data: any}} Message */

const readers = ["admin", "clinical_manager", "provider", "nurse", "ma"];
const renewalTime = 13 * 60_000; // before the access token, and the stream with it, runs out

/** "off", "connecting", "live" or "cut". */
export const stream = signal("off");

/** @type {Set<{type: string, told: (message: Message) => void}>} */
const listeners = new Set();
/** @type {Set<() => void>} */
const refetchers = new Set();

/** Calls told for each message of a type until the returned function is called. @param {Message["type"]} type
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

/** Ends what is followed now. */
let unfollow = () => {};
let trying = false; // by itself, after the connection broke

/** Opens the stream, or opens it anew under a fresh token. */
function open() {
  unfollow();
  stream.value = stream.peek() === "cut" ? "cut" : "connecting"; // peek: whoever calls must not follow what is set here
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
    void renewals.value; // a fresh token wants a fresh subscription
    if (listening) {
      open();
    } else {
      close();
    }
  });
  addEventListener("offline", () => { // a stream that nothing comes through does not know by itself
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
