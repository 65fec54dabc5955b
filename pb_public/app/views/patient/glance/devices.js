// The patient's devices with last reading and battery.
import { get } from "../../../api.js";
import { can } from "../../../permissions.js";
import { updateQuery } from "../../../router.js";
import { ago, dateTime, humanize } from "../../../ui/format.js";
import { Loaded, useLoad } from "../../../ui/states.js";
import { kindNames } from "../../../ui/vitals.js";
import { html } from "../../../view.js";

/** @type {Record<string, string>} */
const flags = { no_reading_24h: "no reading for a day" };

/** @param {{id: string, turn: number, zone: string | undefined}} props */
export function HeldDevices({ id, turn, zone }) {
  const list = useLoad((signal) => get("devices/", { patient_id: id, page_size: 20 }, signal), [id, turn]);
  return html`<section class="card held" aria-labelledby="held"><div class="heading"><h2 id="held">Devices</h2></div>
    <${Loaded} from=${list} empty=${(data) => data.results.length === 0}
      nothing=${html`<p class="soft">No devices assigned.${can("assignDevices")
    && html` <button class="link" onClick=${() => updateQuery({ tab: "devices" })}>Assign one</button>`}</p>`}>
      ${(data) => html`<ul>${data.results.map((d) => {
        const trouble = [d.flagged && (flags[d.flag_reason ?? ""] ?? humanize(d.flag_reason ?? "flagged").toLowerCase()),
          !["assigned", "connected"].includes(d.status) && humanize(d.status).toLowerCase(), d.battery_state && d.battery_state !== "normal"
            && `battery ${d.battery_state}`].filter(Boolean);
        return html`<li key=${d.device_id}><span class=${`sign ${trouble.length > 0 ? "warning" : "good"}`}
          aria-hidden="true">${trouble.length > 0 ? "◆" : "✓"}</span>
          <div><span>${kindNames[d.device_type] ?? humanize(d.device_type)} ${d.device_id}</span>
          <small title=${dateTime(d.last_reading_at, zone)}>${[d.last_reading_at ? `read ${ago(d.last_reading_at)}` : "no readings yet",
            d.battery_level !== null && `battery ${d.battery_level} %`, ...trouble].filter(Boolean).join(", ")}</small></div></li>`;
      })}</ul>`}
    </${Loaded}></section>`;
}
