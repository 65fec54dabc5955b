// Shares one session among all tabs of a browser and over a reload. Tokens pass from page to page in memory only and are never on a disk.
// Source: docs/decisions/security.md, "Drafts and the session in a browser".
import { fromReload, leaveForReload, readyForReload } from "./reload.js";
import { Unreachable } from "./request.js";
import { namesHeld, takeNames } from "./router.js";
import { end, hold, me, others, renew, swap, tokensHeld } from "./session.js";
import { learn } from "./sign_on.js";
import { effect } from "./view.js";

/** @typedef {{access: string, refresh: string}} Tokens */

const lock = "vigil.session"; // held by the one tab that renews: a refresh token works once, and a second use ends the session
const channel = "BroadcastChannel" in window && navigator.locks ? new BroadcastChannel(lock) : null;
const answerIn = 1_000;
const renewIn = 15_000;

const name = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
const self = name();
/** The session of this tab; messages of other sessions are ignored. */
let session = "";
let began = false;
let keeper = false;
let release = () => {};
let inLine = false;
/** Callers that wait for the renewing tab: whether there is a fresh token, or null when that tab is gone.
 *  @type {Set<(fresh: boolean | null) => void>} */
const waiting = new Set();
/** @type {(of: {session: string, tokens: Tokens}) => void} */
let arrived = () => {};

/** Activity in one tab extends the session in all. */
export const activity = { heard: (/** @type {number} */ _at) => {}, tell: (/** @type {number} */ at) =>
  tell({ kind: "active", session, at }) };

const tell = (/** @type {any} */ message) => channel?.postMessage(message);
const settle = (/** @type {boolean | null} */ fresh) => waiting.forEach((go) => go(fresh));

/** Queues for the lock of the renewing tab, while there is a session. */
function standInLine() {
  if (inLine || !channel) {
    return;
  }
  inLine = true;
  void navigator.locks.request(lock, () => new Promise((done) => {
    release = () => { keeper = inLine = false; done(null); };
    if (!tokensHeld()) {
      return release();
    }
    keeper = true;
    settle(null);
  }));
}

/** @type {Record<string, (data: any, mine: Tokens) => void>} messages among the tabs of one session */
const within = {
  renew: ({ access }, mine) => {
    if (!keeper) {
      return;
    }
    if (access !== mine.access) {
      return tell({ kind: "tokens", session, tokens: mine }); // that tab missed the last renewal
    }
    renew().then((fresh) => fresh || tell({ kind: "refused", session }), () => tell({ kind: "failed", session }));
  },
  tokens: ({ tokens }) => { hold(tokens, "taken"); settle(true); },
  refused: () => settle(false),
  ended: ({ reason }) => end(reason, false),
  active: ({ at }) => activity.heard(at),
};

/** @param {MessageEvent} event */
function heard({ data }) {
  const mine = tokensHeld();
  if (data.kind === "hello") {
    if (mine && keeper && me.peek()) {
      tell({ kind: "session", to: data.from, session, tokens: mine });
    }
  } else if (data.kind === "session") {
    if (!mine && data.to === self) {
      arrived(data);
    }
  } else if (data.kind === "begun") {
    if (!mine) {
      void adopt(data);
    }
  } else if (mine && data.session === session) {
    within[data.kind]?.(data, mine);
  }
}

/** Requests a renewal from the renewing tab; if that tab is gone, this one renews. @returns {Promise<boolean>} */
function askKeeper() {
  return new Promise((done, fail) => {
    const go = (/** @type {boolean | null} */ fresh) => {
      clearTimeout(timer);
      waiting.delete(go);
      if (fresh !== null) {
        return done(fresh);
      }
      swap().then(done, fail);
    };
    const timer = setTimeout(() => { waiting.delete(go); fail(new Unreachable()); }, renewIn);
    waiting.add(go);
    tell({ kind: "renew", session, access: tokensHeld()?.access });
  });
}

/** Joins the session of another page. @param {{session: string, tokens: Tokens}} of */
async function adopt(of) {
  session = of.session;
  hold(of.tokens, "taken");
  try {
    await learn();
  } catch {
    hold(null);
  }
}

/** The session of another tab, or null. @returns {Promise<{session: string, tokens: Tokens} | null>} */
async function fromTab() {
  const held = channel && (await navigator.locks.query()).held?.some((one) => one.name === lock);
  if (!held) {
    return null;
  }
  return new Promise((done) => {
    const timer = setTimeout(() => done(null), answerIn);
    arrived = (of) => { clearTimeout(timer); done(of); };
    tell({ kind: "hello", from: self });
  });
}

/** Joins the session of other tabs, or resumes this tab's own after a reload. */
export async function resume() {
  channel?.addEventListener("message", heard);
  others.renew = () => (channel && !keeper ? askKeeper() : swap());
  others.ended = (reason) => tell({ kind: "ended", session, reason });
  others.changed = (now, how) => {
    if (now === null) {
      return release();
    }
    if (how === "begun") {
      session = name();
      began = true;
    }
    standInLine();
    if (how === "renewed") {
      tell({ kind: "tokens", session, tokens: now });
    }
  };
  readyForReload();
  addEventListener("pagehide", () => {
    // A closed tab would still handle messages, at the same time as its successor and with the same token.
    channel?.removeEventListener("message", heard);
    release();
    const tokens = tokensHeld();
    if (tokens && me.peek()) {
      leaveForReload({ session, tokens, names: namesHeld() });
    }
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) {
      channel?.addEventListener("message", heard);
      if (tokensHeld()) {
        standInLine();
      }
    }
  });
  const before = await fromReload();
  if (before) {
    takeNames(before.names);
  }
  const of = before ?? (await fromTab());
  if (of) {
    await adopt(of);
  }
  effect(() => {
    const tokens = tokensHeld();
    if (me.value && began && tokens) {
      began = false;
      tell({ kind: "begun", session, tokens });
    }
  });
}
