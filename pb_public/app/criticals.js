// Unacknowledged critical alerts, followed on every page: their number for the menu and the tab's title, and those that the banner names,
// also after a reload, until someone answers them or the user puts them off.
import { get } from "./api.js";
import { can } from "./permissions.js";
import { listen, onGap } from "./live.js";
import { me } from "./session.js";
import { computed, effect, signal } from "./view.js";

/** @typedef {import("../../tools/console/contract.d.ts").components["schemas"]["AlertGroup"]} Group */

/** Open critical alerts. */
export const criticals = signal(0);
/** Their causes, except snoozed ones, the latest first. */
export const criticalCauses = signal(/** @type {Group[]} */ ([]));
/** The number of critical alerts that the user put off, by cause. */
const putOffCounts = signal(/** @type {Map<string, number>} */ (new Map()));

const keyOf = (/** @type {Group} */ { patient_id, type }) => `${patient_id} ${type}`;
/** Causes with critical alerts that the user has not put off, the latest first. */
export const unanswered = computed(() => {
  const before = putOffCounts.value;
  return criticalCauses.value.filter((one) => one.critical_count > (before.get(keyOf(one)) ?? 0));
});
/** @param {Group} a @param {Group} b */
export const isSame = (a, b) => keyOf(a) === keyOf(b);
/** The cause in the dialog that answers it. @type {{value: Group | null, peek: () => Group | null}} */
export const answering = signal(/** @type {Group | null} */ (null));

/** Puts off all open causes. */
export function putOff() {
  putOffCounts.value = new Map(criticalCauses.peek().map((one) => [keyOf(one), one.critical_count]));
}

const pageSize = 100;
const pause = 1_000; // milliseconds between two requests for many alerts
const delay = 100; // for alerts of one transaction
const streamWait = 2_000; // for a stream that does not come up
let timer = 0;
let last = 0;

async function load() {
  last = Date.now();
  if (!can("readClinical")) {
    return;
  }
  try {
    const { count, results, counts } = await get("alerts/groups/", { level: "critical", status: "active", snoozed: false,
      page_size: pageSize });
    criticals.value = counts.critical;
    criticalCauses.value = results;
    if (count <= results.length) { // of an answered alert the next one is named again
      const open = new Map(results.map((/** @type {Group} */ one) => [keyOf(one), one.critical_count]));
      putOffCounts.value = new Map([...putOffCounts.peek()].filter(([key]) => open.has(key)).map(([key, n]) => [key, Math.min(n,
        open.get(key) ?? 0)]));
    }
  } catch {
    // Keeps the last ones; the stream's state shows that they may be stale.
  }
}

/** Loads soon, once for many changes. @param {number} [wait] milliseconds */
export function reloadCriticals(wait = Math.max(delay, pause - (Date.now() - last))) {
  timer ||= setTimeout(loadNow, wait);
}

function loadNow() {
  clearTimeout(timer);
  timer = 0;
  void (me.peek() && load());
}

export function followCriticals() {
  effect(() => {
    if (me.value) {
      reloadCriticals(streamWait); // once: the stream loads them when it is up
    } else {
      criticals.value = 0;
      criticalCauses.value = [];
      putOffCounts.value = new Map();
      answering.value = null;
    }
  });
  listen("alert", () => reloadCriticals());
  listen("escalation", () => reloadCriticals());
  onGap(loadNow);
  setInterval(loadNow, 60_000);
}
