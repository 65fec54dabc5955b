// The evidence of an entry: readings by day, time, consents, devices, alerts, and the audit trail.
import { get } from "../../api.js";
import { calendarDate, clock, dateTime, fullTime, humanize } from "../../ui/format.js";
import { Loaded, useLoad } from "../../ui/states.js";
import { Facts, Table } from "../../ui/table.js";
import { kindNames } from "../../ui/vitals.js";
import { html } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["BillingEvidence"]} Proof */
/** @typedef {import("../../ui/table.js").Column} Column */

/** @param {{entry: string}} props */
export function Evidence({ entry }) {
  const proof = useLoad((signal) => get(`billing/entries/${entry}/evidence/`, {}, signal), [entry]);
  return html`<${Loaded} from=${proof}>${(/** @type {Proof} */ data) => html`
    <${Facts} of=${[["Rendering provider", data.rendering_provider && `${data.rendering_provider.name}, ${data.rendering_provider.npi
      ? `NPI ${data.rendering_provider.npi}` : "no NPI on record"}`],
      ["Plan of care", data.plan_of_care && `${calendarDate(data.plan_of_care.dated)}, ${data.plan_of_care.author}`]]} />
    <${Part} title="Orders, plans and visits" rows=${data.orders} columns=${orderColumns}
      none="No orders, plans of care or visits on record." />
    <${Part} title="Readings" rows=${byDay(data.readings)} keyOf=${(row) => row.day} columns=${dayColumns}
      none="No days with readings for this entry." />
    <${Part} title="Time" rows=${data.time_entries} columns=${timeColumns} none="No time for this entry." />
    <${Part} title="Consents" rows=${data.consents} columns=${consentColumns} none="No consent on record." />
    <${Part} title="Devices" rows=${data.device_assignments} keyOf=${(row) => row.device_id + row.assigned_at} columns=${deviceColumns}
      none="No devices assigned." />
    <${Part} title="Alerts and outcomes" rows=${data.alerts} columns=${alertColumns} none="No alerts in the period." />
    <${Part} title="Audit trail" rows=${data.audit_trail} columns=${trailColumns} none="No audit entries yet." />
    <p class="soft">Generated ${fullTime(data.generated_at)}. The trail is anchored in entry ${data.audit_chain.head_id} of the audit
      log: <span
      class="hash">${data.audit_chain.head_hash}</span></p>`}
  </${Loaded}>`;
}

/** @param {{title: string, rows: any[], columns: Column[], none: string, keyOf?: (row: any) => any}} props */
const Part = ({ title, rows, columns, none, keyOf }) => html`<section><h3>${title}${rows.length > 0
  && html` <small class="soft">${rows.length}</small>`}</h3>
  ${rows.length === 0 ? html`<p class="soft">${none}</p>` : html`<${Table} caption=${title} rows=${rows} columns=${columns}
    keyOf=${keyOf} />`}</section>`;

/** One row for each counted day, with all its readings. @param {Proof["readings"]} readings */
function byDay(readings) {
  const days = new Map();
  for (const reading of readings) {
    const day = days.get(reading.day) ?? { day: reading.day, readings: [], devices: new Set() };
    if (reading.id) {
      day.readings.push(`${kindNames[reading.observation_type ?? ""] ?? humanize(reading.observation_type)} ${
        Object.values(reading.values ?? {})
        .join("/")} ${clock(reading.measured_at)} (${reading.origin ?? "–"})`);
      day.devices.add(reading.device_id);
    }
    days.set(reading.day, day);
  }
  return [...days.values()];
}

/** @type {Column[]} */
const dayColumns = [
  { name: "day", head: "Day", cell: (row) => calendarDate(row.day) },
  { name: "readings", head: "Readings", cell: (row) => row.readings.join(", ") || "The reading of this day was retracted." },
  { name: "devices", head: "Device", cell: (row) => [...row.devices].join(", ") || "–" },
];
/** @type {Column[]} */
const orderColumns = [
  { name: "kind", head: "Kind", cell: (row) => humanize(row.kind) },
    { name: "dated", head: "Dated", cell: (row) => calendarDate(row.dated) },
  { name: "recorded_at", head: "Recorded", cell: (row) => dateTime(row.recorded_at) }, { name: "author", head: "Author" },
  { name: "text", head: "Text", cell: (row) => row.text ?? "–" },
];
/** @type {Column[]} */
const timeColumns = [
  { name: "started_at", head: "When", cell: (row) => `${dateTime(row.started_at)} – ${clock(row.ended_at)}` },
  { name: "duration_seconds", head: "Minutes", number: true, cell: (row) => (row.duration_seconds / 60).toFixed(1) },
  { name: "category", head: "Activity", cell: (row) =>
    [humanize(row.category), row.activity && humanize(row.activity), row.contact_method && humanize(row.contact_method)].filter(Boolean)
    .join(", ") },
  { name: "author", head: "Who", cell: (row) => row.person ?? row.author }, { name: "source", head: "Source", cell: (row) =>
    humanize(row.source) }, { name: "recorded_at", head: "Recorded", cell: (row) => dateTime(row.recorded_at) },
  { name: "attested_by", head: "Attested by", cell: (row) => (row.attested_at ? `${row.attested_by}, ${dateTime(row.attested_at)}`
    : "–") }, { name: "notes", head: "Notes" },
];
/** @type {Column[]} */
const consentColumns = [
  { name: "method", head: "Method", cell: (row) => humanize(row.method) }, { name: "granted_at", head: "Granted", cell: (row) =>
    dateTime(row.granted_at) },
  { name: "recorded_at", head: "Recorded", cell: (row) => dateTime(row.recorded_at) },
  { name: "expires_at", head: "Until", cell: (row) => dateTime(row.expires_at) }, { name: "revoked_at", head: "Revoked", cell: (row) =>
    dateTime(row.effective_at ?? row.revoked_at) },
  { name: "recorded_by", head: "Recorded by" },
];
/** @type {Column[]} */
const deviceColumns = [
  { name: "device_id", head: "Device" },
  { name: "model", head: "Model", cell: (row) =>
    [row.manufacturer, row.model, row.serial_number && `no. ${row.serial_number}`].filter(Boolean).join(" ") || "–" },
    { name: "assigned_at", head: "From", cell: (row) => dateTime(row.assigned_at) },
  { name: "unassigned_at", head: "Until", cell: (row) => (row.unassigned_at ? dateTime(row.unassigned_at) : "Now") },
  { name: "assigned_by", head: "Assigned by" },
  { name: "setup_completed_at", head: "Set up", cell: (row) => dateTime(row.setup_completed_at) }, { name: "setup_completed_by",
    head: "Set up by" },
];
/** @type {Column[]} */
const alertColumns = [
  { name: "created_at", head: "When", cell: (row) => dateTime(row.created_at) }, { name: "type", head: "Alert", cell: (row) =>
    `${humanize(row.level)}: ${humanize(row.type).toLowerCase()}` },
  { name: "status", head: "State", cell: (row) => humanize(row.status) },
  { name: "acknowledged_by", head: "Acknowledged", cell: (row) =>
    (row.acknowledged_at ? `${row.acknowledged_by}, ${dateTime(row.acknowledged_at)}` : "–") },
  { name: "outcome", head: "Outcome", cell: (row) => (row.outcome ? humanize(row.outcome) : "–") },
];
/** @type {Column[]} */
const trailColumns = [
  { name: "recorded_at", head: "When", cell: (row) => fullTime(row.recorded_at) }, { name: "event", head: "Event" },
  { name: "actor", head: "Who" },
  { name: "hash", head: "Hash", cell: (row) => html`<span class="hash" title=${row.hash}>${row.hash.slice(0, 16)}…</span>` },
];
