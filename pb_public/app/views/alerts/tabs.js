// The ways to look at alerts, each with how many there are.
import { get } from "../../api.js";
import { listen } from "../../live.js";
import { me } from "../../session.js";
import { useLoad } from "../../ui/states.js";
import { kinds } from "../../ui/vitals.js";
import { classes, html, useEffect } from "../../view.js";
import { typeName } from "./words.js";

const others = ["pulse", "irregular_heartbeat", "implausible_reading", "device_clock", "missed_reading", "no_reading_24h", "stale_reading", "device_battery", "hub_offline"];
export const kindOptions = /** @type {[string, string][]} */ ([["", "All kinds"], ...Object.entries(kinds), ...others.map((type) => [type, typeName(type)])]);

/** @param {{shown: string, choose: (tab: string) => void, filters: Record<string, string>}} props */
export function Tabs({ shown, choose, filters }) {
  const asked = JSON.stringify(filters);
  const counts = useLoad((signal) => read(filters, signal), [asked]);
  useEffect(() => {
    let timer = 0;
    const stop = listen("alert", () => { timer ||= setTimeout(() => { timer = 0; counts.reload(); }, 2000); });
    return () => { clearTimeout(timer); stop(); };
  }, []);
  const tabs = /** @type {[string, string, string][]} */ ([["open", "", "Open"], ["critical", "▲", "Critical"], ["warning", "◆", "Warning"], ["mine", "✓", "Mine, in progress"],
    ["progress", "✓", "All in progress"], ["snoozed", "☾", "Snoozed"], ["answered", "", "Answered"]]);
  return html`<div class="choices views" role="group" aria-label="Which alerts">${tabs.map(([code, sign, name]) => html`
    <button key=${code} class=${classes("level", code)} aria-pressed=${shown === code ? "true" : "false"} onClick=${() => choose(code)}>
      ${sign && html`<span class="sign" aria-hidden="true">${sign} </span>`}${name}${counts.data?.[code] !== undefined && html` <strong>${counts.data[code]}</strong>`}</button>`)}</div>`;
}

/** How many alerts each way has. @param {Record<string, string>} filters @param {AbortSignal} signal */
async function read(filters, signal) {
  const ask = (/** @type {Record<string, unknown>} */ more) => get("alerts/groups/", { ...filters, ...more, page_size: 1 }, signal);
  const [open, mine, progress, snoozed] = await Promise.all([
    ask({ status: "active" }), ask({ status: "acknowledged", acknowledged_by: me.value?.email }), ask({ status: "acknowledged" }), ask({ status: "active", snoozed: true }),
  ]);
  const all = (/** @type {any} */ page) => Object.values(page.levels).reduce((sum, level) => sum + level.alerts, 0);
  return { open: all(open), critical: open.levels.critical.alerts, warning: open.levels.warning.alerts, mine: all(mine), progress: all(progress), snoozed: all(snoozed) };
}
