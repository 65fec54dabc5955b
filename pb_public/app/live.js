// The live triage topic: what changes is told as it happens. When the stream is cut the console says so, and whoever
// listens fetches anew once it is back, because what was missed is not repeated.
import PocketBase, { BaseAuthStore } from "/vendor/pocketbase.js";
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

const store = new BaseAuthStore(); // in memory; the SDK's own keeps tokens in local storage
const pb = new PocketBase(location.origin, store);
pb.autoCancellation(false);
pb.realtime.onDisconnect = () => {
  if (stream.peek() !== "off" && !opening) {
    stream.value = "cut";
  }
};

/** @type {Promise<void> | null} */
let opening = null;

/** Opens the stream, or opens it anew under a fresh token; callers at the same time share one attempt. */
function open() {
  opening ??= connect().finally(() => { opening = null; });
  return opening;
}

async function connect() {
  stream.value = stream.peek() === "cut" ? "cut" : "connecting"; // peek: whoever calls must not follow what is set here
  store.save(accessToken(), null);
  try {
    await pb.realtime.unsubscribe();
    await pb.realtime.subscribe("triage", tell);
    await pb.realtime.subscribe("PB_CONNECT", caughtUp); // from now on: when the SDK has reconnected by itself
    if (!pb.realtime.isConnected) {
      throw new Error("not connected"); // the SDK does not wait while it tries again by itself; it tells when it got through
    }
    caughtUp();
  } catch {
    stream.value = "cut";
  }
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
  store.clear();
  void pb.realtime.unsubscribe();
}

export function keepLive() {
  effect(() => {
    const listening = me.value !== null && readers.includes(me.value.role);
    void renewals.value; // a fresh token wants a fresh subscription
    if (listening) {
      void open();
    } else {
      close();
    }
  });
  addEventListener("offline", () => { // a stream that nothing comes through does not know by itself
    if (stream.peek() !== "off") {
      stream.value = "cut";
    }
  });
  addEventListener("online", () => me.peek() && stream.peek() === "cut" && void open());
  setInterval(() => { // the SDK reconnects by itself, but not after it was refused
    if (stream.value === "cut" && me.value && !pb.realtime.isConnected) {
      void renew().catch(() => false).then((fresh) => fresh ? undefined : open());
    }
  }, 10_000);
  setInterval(() => {
    if (stream.value === "live") {
      void renew().catch(() => false);
    }
  }, renewalTime);
}
