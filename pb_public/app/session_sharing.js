// Shares one session among all tabs of a browser and over a reload. Tokens pass from page to page in memory only and are never on a disk.
// Source: docs/decisions/security.md, "Drafts and the session in a browser".
import { takeAfterReload, saveForReload, prepareReload } from "./reload.js";
import { Unreachable } from "./request.js";
import { hiddenEntries, restoreHidden } from "./router.js";
import { end, setTokens, me, otherTabs, renew, refreshTokens, tokensHeld } from "./session.js";
import { loadProfile } from "./sign_on.js";
import { effect } from "./view.js";

/** @typedef {{access: string, refresh: string}} Tokens */

const lock = "vigil.session"; // held by the one tab that renews: a refresh token works once, and a second use ends the session
const channel = "BroadcastChannel" in window && navigator.locks ? new BroadcastChannel(lock) : null;
const replyTimeout = 1_000;
const renewalTimeout = 15_000;

const randomId = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
const tabId = randomId();
/** The session of this tab; messages of other sessions are ignored. */
let session = "";
let isNewSession = false;
let isRenewer = false;
let releaseLock = () => {};
let isQueued = false;
/** Callers that wait for the renewing tab: whether there is a fresh token, or null when that tab is gone.
 *  @type {Set<(fresh: boolean | null) => void>} */
const renewalWaiters = new Set();
/** @type {(of: {session: string, tokens: Tokens}) => void} */
let onSession = () => {};

/** Activity in one tab extends the session in all. */
export const activity = { onActivity: (/** @type {number} */ _at) => {}, share: (/** @type {number} */ at) =>
  broadcast({ kind: "active", session, at }) };

const broadcast = (/** @type {any} */ message) => channel?.postMessage(message);
const notifyWaiters = (/** @type {boolean | null} */ fresh) => renewalWaiters.forEach((go) => go(fresh));

/** Queues for the lock of the renewing tab, while there is a session. */
function queueForLock() {
  if (isQueued || !channel) {
    return;
  }
  isQueued = true;
  void navigator.locks.request(lock, () => new Promise((done) => {
    releaseLock = () => { isRenewer = isQueued = false; done(null); };
    if (!tokensHeld()) {
      return releaseLock();
    }
    isRenewer = true;
    notifyWaiters(null);
  }));
}

/** @type {Record<string, (data: any, mine: Tokens) => void>} messages among the tabs of one session */
const handlers = {
  renew: ({ access }, mine) => {
    if (!isRenewer) {
      return;
    }
    if (access !== mine.access) {
      return broadcast({ kind: "tokens", session, tokens: mine }); // that tab missed the last renewal
    }
    renew().then((fresh) => fresh || broadcast({ kind: "refused", session }), () => broadcast({ kind: "failed", session }));
  },
  tokens: ({ tokens }) => { setTokens(tokens, "taken"); notifyWaiters(true); },
  refused: () => notifyWaiters(false),
  ended: ({ reason }) => end(reason, false),
  active: ({ at }) => activity.onActivity(at),
};

/** @param {MessageEvent} event */
function onMessage({ data }) {
  const mine = tokensHeld();
  if (data.kind === "hello") {
    if (mine && isRenewer && me.peek()) {
      broadcast({ kind: "session", to: data.from, session, tokens: mine });
    }
  } else if (data.kind === "session") {
    if (!mine && data.to === tabId) {
      onSession(data);
    }
  } else if (data.kind === "begun") {
    if (!mine) {
      void joinSession(data);
    }
  } else if (mine && data.session === session) {
    handlers[data.kind]?.(data, mine);
  }
}

/** Requests a renewal from the renewing tab; if that tab is gone, this one renews. @returns {Promise<boolean>} */
function requestRenewal() {
  return new Promise((done, fail) => {
    const go = (/** @type {boolean | null} */ fresh) => {
      clearTimeout(timer);
      renewalWaiters.delete(go);
      if (fresh !== null) {
        return done(fresh);
      }
      refreshTokens().then(done, fail);
    };
    const timer = setTimeout(() => { renewalWaiters.delete(go); fail(new Unreachable()); }, renewalTimeout);
    renewalWaiters.add(go);
    broadcast({ kind: "renew", session, access: tokensHeld()?.access });
  });
}

/** Joins the session of another page. @param {{session: string, tokens: Tokens}} of */
async function joinSession(of) {
  session = of.session;
  setTokens(of.tokens, "taken");
  try {
    await loadProfile();
  } catch {
    setTokens(null);
  }
}

/** The session of another tab, or null. @returns {Promise<{session: string, tokens: Tokens} | null>} */
async function sessionOfTab() {
  const held = channel && (await navigator.locks.query()).held?.some((one) => one.name === lock);
  if (!held) {
    return null;
  }
  return new Promise((done) => {
    const timer = setTimeout(() => done(null), replyTimeout);
    onSession = (of) => { clearTimeout(timer); done(of); };
    broadcast({ kind: "hello", from: tabId });
  });
}

/** Joins the session of other tabs, or resumes this tab's own after a reload. */
export async function resume() {
  channel?.addEventListener("message", onMessage);
  otherTabs.renew = () => (channel && !isRenewer ? requestRenewal() : refreshTokens());
  otherTabs.ended = (reason) => broadcast({ kind: "ended", session, reason });
  otherTabs.changed = (now, how) => {
    if (now === null) {
      return releaseLock();
    }
    if (how === "begun") {
      session = randomId();
      isNewSession = true;
    }
    queueForLock();
    if (how === "renewed") {
      broadcast({ kind: "tokens", session, tokens: now });
    }
  };
  prepareReload();
  addEventListener("pagehide", () => {
    // A closed tab would still handle messages, at the same time as its successor and with the same token.
    channel?.removeEventListener("message", onMessage);
    releaseLock();
    const tokens = tokensHeld();
    if (tokens && me.peek()) {
      saveForReload({ session, tokens, names: hiddenEntries() });
    }
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) {
      channel?.addEventListener("message", onMessage);
      if (tokensHeld()) {
        queueForLock();
      }
    }
  });
  const before = await takeAfterReload();
  if (before) {
    restoreHidden(before.names);
  }
  const of = before ?? (await sessionOfTab());
  if (of) {
    await joinSession(of);
  }
  effect(() => {
    const tokens = tokensHeld();
    if (me.value && isNewSession && tokens) {
      isNewSession = false;
      broadcast({ kind: "begun", session, tokens });
    }
  });
}
