// Hubs with the devices behind them, and the alerts about devices and missing data.
import { can } from "../../permissions.js";
import { go } from "../../router.js";
import { Badge } from "../../ui/badge.js";
import { Field } from "../../ui/form.js";
import { ago, dateTime, humanize } from "../../ui/format.js";
import { List } from "../../ui/table.js";
import { kindNames } from "../../ui/vitals.js";
import { useQuery } from "../../query.js";
import { html } from "../../view.js";

const types = /** @type {[string, string][]} */ ([["", "All kinds"], ...["missed_reading", "no_reading_24h", "device_battery",
  "hub_offline", "stale_reading", "device_info"].map((type) => [type, humanize(type)])]);

export function Equipment() {
  const [filters, setFilters] = useQuery({ type: "", acknowledged: "false" });
  return html`<section class="card"><h2>Device alerts</h2>
      <div class="filters" role="search" aria-label="Filter the device alerts">
        <${Field} label="Kind" name="type" kind="select" value=${filters.type} options=${types} onChange=${(event) =>
          setFilters({ type: event.target.value })} />
        <${Field} label="Show" name="acknowledged" kind="select" value=${filters.acknowledged} options=${[["false", "Open"],
          ["true", "Acknowledged"], ["", "All"]]} onChange=${(event) => setFilters({ acknowledged: event.target.value })} />
      </div>
      <${List} path="devices/alerts/" query=${filters} size=${10} caption="Device alerts, newest first" nothing="No alerts match"
        columns=${alertColumns} open=${can("readClinical") ? (alert) => go("patient", { id: alert.patient_id, tab: "devices" })
        : undefined} />
    </section>
    <section class="card"><h2>Hubs</h2>
      <${List} path="hubs/" caption="Hubs" nothing="No hubs yet" keyOf=${(hub) => hub.hub_id} columns=${hubColumns} />
    </section>`;
}

/** @type {import("../../ui/table.js").Column[]} */
const alertColumns = [
  { name: "patient_name", head: "Patient" },
  { name: "level", head: "Level", cell: (alert) => html`<${Badge} of=${alert.level} />` },
  { name: "message", head: "Alert" },
  { name: "created_at", head: "Since", cell: (alert) => html`<span title=${dateTime(alert.created_at)}>${ago(alert.created_at)}</span>` },
  { name: "status", head: "State", cell: (alert) => humanize(alert.status) },
];

/** @type {import("../../ui/table.js").Column[]} */
const hubColumns = [
  { name: "hub_id", head: "Hub" },
  { name: "status", head: "State", cell: (hub) => html`<${Badge} of=${hub.status} />` },
  { name: "last_heartbeat_at", head: "Last contact", cell: (hub) => ago(hub.last_heartbeat_at) },
  { name: "devices", head: "Devices", cell: (hub) =>
    hub.devices.map((device) => `${device.device_id}${device.patient_name ? ` of ${device.patient_name}`
    : ""} (${(kindNames[device.device_type ?? ""] ?? humanize(device.device_type)).toLowerCase()}, ${
      humanize(device.status).toLowerCase()})`)
    .join(", ") || "None" },
];
