// The live triage topic. When the stream is disconnected the console shows it, and listeners load their data again after a reconnect,
// because missed messages are not repeated.
import { follow } from "./events.js";
import { accessToken, me, renew, renewals } from "./session.js";
import { effect, signal } from "./view.js";

/** @typedef {{type: "patient"|"stats"|"alert"|"escalation", seq: number, at: string, data: any}} Message */

const liveRoles = ["admin", "clinical_manager", "provider", "nurse", "ma"];
const renewalTime = 13 * 60_000; // before the access token, and the stream with it, expires

/** "off", "connecting", "live" or "cut". */
export const stream = signal("off");

/** @type {Set<{type: string, handler: (message: Message) => void}>} */
const listeners = new Set();
/** @type {Set<() => void>} */
const refetchers = new Set();

/** Calls handler for each message of a type until the returned function is called. @param {Message["type"]} type
 *  @param {(message: Message) => void} handler */
export function listen(type, handler) {
  const listener = { type, handler };
  listeners.add(listener);
  return () => { listeners.delete(listener); };
}

/** Calls refetch whenever messages may have been missed. @param {() => void} refetch */
export function onGap(refetch) {
  refetchers.add(refetch);
  return () => { refetchers.delete(refetch); };
}

/** Ends the current subscription. */
let unsubscribe = () => {};
let isRetrying = false; // the stream reconnects automatically

/** Opens the stream, or reopens it with a fresh token. */
function connect() {
  unsubscribe();
  stream.value = stream.peek() === "cut" ? "cut" : "connecting"; // peek: the caller's effect must not depend on what is set here
  isRetrying = false;
  unsubscribe = follow("triage", accessToken(),
    { onMessage: dispatch, onUp: onConnected, onDown: (again) => { stream.value = "cut"; isRetrying = again; } });
}

/** @param {Message} message */
function dispatch(message) {
  for (const { type, handler } of listeners) {
    if (type === message.type) {
      handler(message);
    }
  }
}

function onConnected() {
  stream.value = "live";
  refetchers.forEach((refetch) => refetch());
}

function disconnect() {
  stream.value = "off";
  unsubscribe();
}

export function keepLive() {
  effect(() => {
    const listening = me.value !== null && liveRoles.includes(me.value.role);
    void renewals.value; // a fresh token needs a fresh subscription
    if (listening) {
      connect();
    } else {
      disconnect();
    }
  });
  addEventListener("offline", () => { // a silent stream does not detect this
    if (stream.peek() !== "off") {
      stream.value = "cut";
      isRetrying = true;
    }
  });
  addEventListener("online", () => me.peek() && stream.peek() === "cut" && connect());
  setInterval(() => { // a stream that was refused waits for a fresh token
    if (stream.value === "cut" && me.value && !isRetrying) {
      void renew().catch(() => false).then((fresh) => fresh ? undefined : connect());
    }
  }, 10_000);
  setInterval(() => {
    if (stream.value === "live") {
      void renew().catch(() => false);
    }
  }, renewalTime);
}
