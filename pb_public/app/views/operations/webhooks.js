// Webhook endpoints: their events, state, delivery log and settings; their secrets, shown once.
import { get, patch, post, remove } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime, humanize } from "../../ui/format.js";
import { useLoad } from "../../ui/states.js";
import { Facts, List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";
import { ReauthField, useReauth } from "../reauth.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["Webhook"]} Webhook */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["WebhookSecret"]} Secret */
/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["WebhookDelivery"]} Delivery */
/** @typedef {Webhook["events"][number]} Event */

/** Labels of the events. @type {[Event, string][]} */
const events = [
  ["observation.created", "A reading was stored"], ["observation.withdrawn", "A reading was marked as entered in error"],
  ["alert.raised", "An alert was raised"],
  ["alert.resolved", "An alert was closed"], ["escalation.opened", "An escalation was opened"],
  ["escalation.updated", "An escalation was updated"],
  ["escalation.resolved", "An escalation was closed"], ["patient.created", "A patient was enrolled"],
  ["patient.updated", "A patient was updated"],
  ["patient.archived", "A patient was archived or deleted"], ["device.status", "A device’s status changed"],
  ["transmission.failed", "A delivery to the EMR failed"],
  ["claim.updated", "A billing entry was updated"],
];

/** @param {string} code */
const eventText = (code) => events.find(([event]) => event === code)?.[1] ?? (code === "webhook.test" ? "Test" : code);

export function Webhooks() {
  const [open, setOpen] = useState(/** @type {Webhook | "new" | null} */ (null));
  const [secret, setSecret] = useState(/** @type {Secret | null} */ (null));
  const [revision, setRevision] = useState(0);
  const changed = () => setRevision((n) => n + 1);
  const close = () => { setOpen(null); changed(); };
  const rotated = (/** @type {Secret} */ made) => { close(); setSecret(made); };
  return html`<div class="bar-of-acts"><p>External systems that are notified of events. Each request is signed. It contains record
    IDs, and patient data only where enabled.</p>
      <button class="main" onClick=${() => setOpen("new")}>Add a webhook</button></div>
    <${List} path="webhooks/" turn=${revision} caption="Webhooks" nothing="No webhooks yet" open=${setOpen} columns=${columns} />
    ${open === "new" && html`<${NewWebhook} close=${close} made=${rotated} />`}
    ${open !== null && open !== "new" && html`<${OneWebhook} webhook=${open} close=${close} rotated=${rotated}
      changed=${(/** @type {Webhook} */ next) => { setOpen(next); changed(); }} />`}
    ${secret && html`<${Shown} of=${secret} close=${() => setSecret(null)} />`}`;
}

/** @param {Webhook} webhook */
function stateOf({ active, off_because: because, failing_since: failing }) {
  if (active) {
    return failing ? html`<${Badge} of="warning" text="Failing" />` : html`<${Badge} of="online" text="Active" />`;
  }
  const why = because === "gone" ? "Off: endpoint gone" : because === "failing" ? "Off: failing for days"
    : because === "client" ? "Off: its client was changed" : "Off";
  return html`<${Badge} of=${because ? "failed" : ""} text=${why} />`;
}

/** @param {Webhook} webhook */
const hostOf = (webhook) => new URL(webhook.url).host;

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "url", head: "Receiver", cell: hostOf },
  { name: "events", head: "Events", cell: (webhook) => webhook.events.map(eventText).join(", ") },
  { name: "include_values", head: "Patient data", cell: (webhook) => (webhook.include_values ? "Yes" : "No") },
  { name: "last_delivered_at", head: "Last delivered", cell: (webhook) => (webhook.last_delivered_at ? ago(webhook.last_delivered_at)
    : "Never") },
  { name: "active", head: "State", cell: stateOf },
];

/** The form's values in the server's format. @param {Record<string, any>} v */
const bodyOf = (v) => ({ url: v.url, events: events.map(([event]) => event).filter((event) => v[event]),
  include_values: v.include_values });

/** @param {{webhook?: Webhook, reauth: ReturnType<typeof useReauth>, errors: Record<string, string[]>}} props */
const Fields = ({ webhook, reauth, errors }) => html`
  <${Field} label="URL" name="url" kind="url" maxlength="2048" value=${webhook?.url} hint="https URL at a public host." errors=${errors} />
  <fieldset><legend>Events</legend>${events.map(([event, text]) => html`<${Field} key=${event} label=${text} name=${event}
    kind="checkbox" value=${webhook?.events.includes(event)} />`)}
    ${errors.events && html`<small class="wrong" role="alert">${errors.events.join(" ")}</small>`}</fieldset>
  <${Field} label="Include patient data" name="include_values" kind="checkbox" value=${webhook?.include_values}
    hint="Sends readings, names and notes with each request. Without it, the receiver fetches the data that it may read."
      errors=${errors} />
  <${ReauthField} reauth=${reauth} errors=${errors} />`;

/** @param {{close: () => void, made: (made: Secret) => void}} props */
function NewWebhook({ close, made }) {
  const reauth = useReauth("current_password");
  return html`<${Dialog} wide title="Add a webhook" close=${close}>
    <${Form} submit="Add" cancel=${close} done=${made}
      send=${reauth.wrap((values, password) => post("webhooks/", { ...bodyOf(values), ...password }))}>${(errors) =>
      html`<${Fields} reauth=${reauth} errors=${errors} />`}</${Form}>
  </${Dialog}>`;
}

/** @param {{of: Secret, close: () => void}} props */
const Shown = ({ of, close }) => html`<${Dialog} title="Webhook secret" close=${close}>
  <p>Shown only once. The receiver needs it to verify the signature of requests. Send it over a secure
    channel.</p>
  <${Facts} of=${[["Receiver", hostOf(of)], ["Secret", html`<code>${of.secret}</code>`]]} />
  <div class="actions"><button class="main" onClick=${close}>I’ve saved it</button></div>
</${Dialog}>`;

/** @param {{webhook: Webhook, close: () => void, changed: (webhook: Webhook) => void, rotated: (made: Secret) => void}} props */
function OneWebhook({ webhook, close, changed, rotated }) {
  const [revision, setRevision] = useState(0);
  const reauth = useReauth("current_password");
  const path = `webhooks/${webhook.id}/`;
  const lastError = useLoad(async (signal) => (await get(`${path}deliveries/`, { page_size: 100 }, signal)).results
    .find((/** @type {Delivery} */ d) => d.error), [webhook.failing_since, revision]).data;
  const reloadLog = () => get(path).then((next) => { setRevision((n) => n + 1); changed(next); });
  return html`<${Dialog} wide title=${hostOf(webhook)} close=${close}>
    <${Facts} of=${[["State", stateOf(webhook)], ["Created", dateTime(webhook.created_at)], ["Last delivered", webhook.last_delivered_at
      ? dateTime(webhook.last_delivered_at) : "Never"],
      ["Failing since", webhook.failing_since ? dateTime(webhook.failing_since) : "–"],
      ["Last error", lastError ? `${answerOf(lastError)}, ${dateTime(lastError.created_at)}` : "–"]]} />
    <${Acts} webhook=${webhook} changed=${changed} look=${reloadLog} rotated=${rotated} removed=${close} />
    <h3>Delivery log</h3>
    <${Log} webhook=${webhook} turn=${revision} look=${reloadLog} />
    <h3>Edit</h3>
    <${Form} submit="Save" send=${reauth.wrap((values, password) => patch(path, { ...bodyOf(values), ...password }))}
      done=${(answer) => { toast("Saved. Applies to new events."); changed(answer); }}>${(errors) => html`
      <${Fields} webhook=${webhook} reauth=${reauth} errors=${errors} />`}</${Form}>
  </${Dialog}>`;
}

const problems = {
  address: "the address is not allowed", timeout: "timed out", certificate: "certificate not trusted",
  connection: "no connection",
  status: "rejected", unreadable: "the data cannot be read",
};

/** @param {Delivery} d */
const answerOf = (d) => [d.status_code, d.error && problems[d.error]].filter(Boolean).join(": ") || "–";

/** @param {Delivery} d */
const tones = (d) => (d.status === "delivered" ? "succeeded" : d.status === "failed" ? "failed" : d.attempts > 0 ? "warning" : "");

/** @param {{webhook: Webhook, turn: number, look: () => Promise<any>}} props */
function Log({ webhook, turn, look: reloadLog }) {
  const [status, setStatus] = useState("");
  /** @type {import("../../ui/table.js").Column[]} */
  const shown = [
    { name: "created_at", head: "Since", cell: (d) => dateTime(d.created_at) },
    { name: "event", head: "Event", cell: (d) => eventText(d.event) },
    { name: "object_id", head: "Record", cell: (d) => html`<code>${d.object_id}</code>` },
    { name: "status", head: "State", cell: (d) => html`<${Badge} of=${tones(d)} text=${humanize(d.status)} />` },
    { name: "attempts", head: "Attempts", number: true },
    { name: "error", head: "Last response", cell: answerOf },
    { name: "next_retry_at", head: "Next", cell: (d) => (d.next_retry_at ? dateTime(d.next_retry_at) : "–") },
    { name: "id", head: html`<span class="unseen">Actions</span>`, cell: (d) => webhook.active && d.event !== "webhook.test"
      && html`<${ActionButton} act=${() => post(`webhooks/deliveries/${d.id}/retry/`)} doneText="Resending." done=${reloadLog}
        aria-label=${`Resend “${eventText(d.event)}” ${d.object_id}`}>Resend</${ActionButton}>` },
  ];
  return html`<${Field} label="Show" name="status" kind="select" value=${status} onChange=${(/** @type {any} */ event) =>
    setStatus(event.target.value)}
      options=${[["", "All"], ["pending", "Pending"], ["delivered", "Delivered"], ["failed", "Failed"]]} />
    <${List} path=${`webhooks/${webhook.id}/deliveries/`} query=${{ status }} turn=${turn} size=${10} caption="Deliveries"
      nothing="No deliveries yet" columns=${shown} />`;
}

const dangers = {
  off: ["Turn off webhook", "Nothing is sent. New events are queued and sent when it is turned on again."],
  rotate: ["Create new secret", "For 24 hours, requests are signed with both secrets. Update the receiver in that time."],
  remove: ["Remove webhook", "Nothing more is sent, and its delivery log is deleted."],
};

/** @param {{webhook: Webhook, changed: (webhook: Webhook) => void, look: () => Promise<any>, rotated: (made: Secret) => void,
 * removed: () => void}} props */
function Acts({ webhook, changed, look: reloadLog, rotated, removed }) {
  const [confirming, setConfirming] = useState(/** @type {keyof typeof dangers | ""} */ (""));
  const path = `webhooks/${webhook.id}/`;
  const acts = {
    off: () => patch(path, { active: false }).then(changed),
    rotate: () => post(`${path}rotate-secret/`).then(rotated),
    remove: () => remove(path).then(removed),
  };
  const tried = (/** @type {Delivery} */ d) => {
    toast(d.status === "delivered" ? "Test delivered." : `Test failed: ${answerOf(d)}.`,
      d.status === "delivered" ? undefined : "problem");
    return reloadLog();
  };
  return html`<div class="actions">
      <${ActionButton} act=${() => post(`${path}test/`).then(tried)}>Send test</${ActionButton}>
      ${webhook.active ? html`<button onClick=${() => setConfirming("off")}>Turn off</button>`
        : html`<${ActionButton} kind="main" act=${() => patch(path, { active: true }).then(changed)}
          doneText="Turned on. Queued events are being sent.">
          Turn on</${ActionButton}>`}
      <button onClick=${() => setConfirming("rotate")}>Rotate secret</button><button
        onClick=${() => setConfirming("remove")}>Remove</button>
    </div>
    ${confirming && html`<div class="notice warning" role="alert"><p>${dangers[confirming][1]}</p>
      <div class="actions"><button onClick=${() => setConfirming("")}>Cancel</button><${ActionButton} kind="danger" act=${acts[confirming]}
        doneText="Done."
        done=${() => setConfirming("")}>${dangers[confirming][0]}</${ActionButton}></div></div>`}`;
}
