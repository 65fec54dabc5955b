// The tabs of the alert board, with counts.
import { kindNames } from "../../ui/vitals.js";
import { classes, html } from "../../view.js";
import { typeName } from "./labels.js";

const others = ["pulse", "early_warning", "irregular_heartbeat", "implausible_reading", "device_clock", "missed_reading", "no_reading_24h",
  "stale_reading", "device_battery", "hub_offline"];
export const kindOptions = /** @type {[string, string][]} */ ([["", "All kinds"], ...Object.entries(kindNames),
  ...others.map((type) => [type, typeName(type)])]);

const tabs = /** @type {[string, string, string, string][]} */ ([["open", "", "Open", "active"], ["critical", "▲", "Critical", "critical"],
  ["warning", "◆", "Warning", "warning"], ["mine", "✓", "Mine, in progress", "mine"], ["progress", "✓", "All in progress", "in_progress"],
  ["snoozed", "☾", "Snoozed", "snoozed"], ["answered", "", "Closed", ""]]);
/** Those of one patient. */
export const patientTabs = /** @type {typeof tabs} */ ([["all", "", "Open and in progress", ""], ["open", "", "Open", "active"],
  ["progress", "✓", "In progress", "in_progress"], ["snoozed", "☾", "Snoozed", "snoozed"], ["answered", "", "Closed", ""]]);

/** @param {{shown: string, choose: (tab: string) => void, counts: Record<string, number> | null, of?: typeof tabs}} props */
export const Tabs = ({ shown, choose, counts, of: list = tabs }) => html`<div class="choices views" role="group" aria-label="Which alerts">
  ${list.map(([code, sign, name, of]) => html`
    <button key=${code} class=${classes("level", code)} aria-pressed=${shown === code ? "true" : "false"} onClick=${() => choose(code)}>
      ${sign && html`<span class="sign" aria-hidden="true">${sign} </span>`}${name}${counts && of && html` <strong>${counts[of]}</strong>`}
    </button>`)}</div>`;
