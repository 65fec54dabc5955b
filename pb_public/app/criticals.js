// The number of unacknowledged critical alerts, shown in the tab's title and in the menu on every page.
import { get } from "./api.js";
import { can } from "./permissions.js";
import { listen, onGap } from "./live.js";
import { me } from "./session.js";
import { effect, signal } from "./view.js";

/** Open critical alerts. */
export const criticals = signal(0);

const countDelay = 1_000; // milliseconds; one count for many alerts
let timer = 0;

async function count() {
  try {
    criticals.value = can("readClinical") ? (await get("alerts/", { level: "critical", status: "active", page_size: 1 })).count : 0;
  } catch {
    // Keeps the last number; the stream's state shows that it may be stale.
  }
}

function scheduleCount() {
  timer ||= setTimeout(() => { timer = 0; void (me.peek() && count()); }, countDelay);
}

export function followCriticals() {
  effect(() => {
    if (me.value) {
      void count();
    } else {
      criticals.value = 0;
    }
  });
  listen("alert", scheduleCount);
  onGap(scheduleCount);
  setInterval(() => { void (me.peek() && count()); }, 60_000);
}
