// Receivers of others that are told what happens: what each is told of, whether it takes it, the log of what was sent; its secret, shown
// once.
import { get, patch, post, remove } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton, Dialog, Field, Form } from "../../ui/form.js";
import { ago, dateTime, words } from "../../ui/format.js";
import { Facts, List } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { html, useState } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["Webhook"]} Webhook */
/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["WebhookSecret"]} Secret */
/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["WebhookDelivery"]} Delivery */
/** @typedef {Webhook["events"][number]} Event */

/** What a receiver may be told of, in the words of people. @type {[Event, string][]} */
const events = [
  ["observation.created", "A reading was stored"], ["observation.withdrawn", "A reading was entered in error"],
  ["alert.raised", "An alert was raised"],
  ["alert.resolved", "An alert is over"], ["escalation.opened", "An escalation was opened"],
  ["escalation.updated", "An escalation was changed"],
  ["escalation.resolved", "An escalation is over"], ["patient.created", "A patient was enrolled"],
  ["patient.updated", "A patient was changed"],
  ["patient.archived", "A patient was archived or deleted"], ["device.status", "A device changed its state"],
  ["transmission.failed", "A delivery to the EMR was given up"],
  ["claim.updated", "A billing entry was changed"],
];

export function Webhooks() {
  const [open, show] = useState(/** @type {Webhook | "new" | null} */ (null));
  const [secret, reveal] = useState(/** @type {Secret | null} */ (null));
  const [turn, again] = useState(0);
  const changed = () => again((n) => n + 1);
  const close = () => { show(null); changed(); };
  const rotated = (/** @type {Secret} */ made) => { close(); reveal(made); };
  return html`<div class="bar-of-acts"><p>Systems of others that are told what happens. Each request is signed; it names things by their
    ids, and holds values only where that is asked for.</p>
      <button class="main" onClick=${() => show("new")}>Add a webhook</button></div>
    <${List} path="webhooks/" turn=${turn} caption="Webhooks" nothing="Nobody is told what happens" open=${show} columns=${columns} />
    ${open === "new" && html`<${NewWebhook} close=${close} made=${rotated} />`}
    ${open !== null && open !== "new" && html`<${OneWebhook} webhook=${open} close=${close} rotated=${rotated}
      changed=${(/** @type {Webhook} */ next) => { show(next); changed(); }} />`}
    ${secret && html`<${Shown} of=${secret} close=${() => reveal(null)} />`}`;
}

/** @param {Webhook} webhook */
function stateOf({ active, off_because: because, failing_since: failing }) {
  if (active) {
    return failing ? html`<${Badge} of="warning" text="Fails" />` : html`<${Badge} of="online" text="In use" />`;
  }
  const why = because === "gone" ? "Off: its receiver is gone" : because === "failing" ? "Off: it took nothing for days" : "Off";
  return html`<${Badge} of=${because ? "failed" : ""} text=${why} />`;
}

/** @param {Webhook} webhook */
const hostOf = (webhook) => new URL(webhook.url).host;

/** @type {import("../../ui/table.js").Column[]} */
const columns = [
  { name: "url", head: "Receiver", cell: hostOf },
  { name: "events", head: "Is told of", cell: (webhook) => webhook.events.join(", ") },
  { name: "include_values", head: "Values", cell: (webhook) => (webhook.include_values ? "Yes" : "No") },
  { name: "last_delivered_at", head: "Last taken", cell: (webhook) => (webhook.last_delivered_at ? ago(webhook.last_delivered_at)
    : "Never") },
  { name: "active", head: "State", cell: stateOf },
];

/** What the form says, as the service takes it. @param {Record<string, any>} v */
const bodyOf = (v) => ({ url: v.url, events: events.map(([event]) => event).filter((event) => v[event]),
  include_values: v.include_values });

/** @param {{webhook?: Webhook, errors: Record<string, string[]>}} props */
const Fields = ({ webhook, errors }) => html`
  <${Field} label="Address" name="url" kind="url" maxlength="2048" value=${webhook?.url} hint="https, at a public host." errors=${errors} />
  <fieldset><legend>It is told when</legend>${events.map(([event, text]) => html`<${Field} key=${event} label=${text} name=${event}
    kind="checkbox" value=${webhook?.events.includes(event)} />`)}
    ${errors.events && html`<small class="wrong" role="alert">${errors.events.join(" ")}</small>`}</fieldset>
  <${Field} label="With values" name="include_values" kind="checkbox" value=${webhook?.include_values}
    hint="Readings, names and notes leave the practice with each request. Without, the receiver fetches what it may." errors=${errors} />`;

/** @param {{close: () => void, made: (made: Secret) => void}} props */
const NewWebhook = ({ close, made }) => html`<${Dialog} wide title="Add a webhook" close=${close}>
  <${Form} submit="Add" cancel=${close} send=${(values) => post("webhooks/", bodyOf(values))} done=${made}>${(errors) =>
    html`<${Fields} errors=${errors} />`}</${Form}>
</${Dialog}>`;

/** @param {{of: Secret, close: () => void}} props */
const Shown = ({ of, close }) => html`<${Dialog} title="The webhook’s secret" close=${close}>
  <p>It is shown only now. The receiver needs it to tell what comes from here from what does not: hand it over by a way that nobody else
    reads.</p>
  <${Facts} of=${[["Receiver", hostOf(of)], ["Secret", html`<code>${of.secret}</code>`]]} />
  <div class="actions"><button class="main" onClick=${close}>I have kept it</button></div>
</${Dialog}>`;

/** @param {{webhook: Webhook, close: () => void, changed: (webhook: Webhook) => void, rotated: (made: Secret) => void}} props */
function OneWebhook({ webhook, close, changed, rotated }) {
  const [turn, again] = useState(0);
  const path = `webhooks/${webhook.id}/`;
  const look = () => get(path).then((next) => { again((n) => n + 1); changed(next); });
  return html`<${Dialog} wide title=${hostOf(webhook)} close=${close}>
    <${Facts} of=${[["State", stateOf(webhook)], ["Made", dateTime(webhook.created_at)], ["Last taken", webhook.last_delivered_at
      ? dateTime(webhook.last_delivered_at) : "Never"],
      ["Fails since", webhook.failing_since ? dateTime(webhook.failing_since) : "–"]]} />
    <${Acts} webhook=${webhook} changed=${changed} look=${look} rotated=${rotated} removed=${close} />
    <h3>What it was told</h3>
    <${Log} webhook=${webhook} turn=${turn} look=${look} />
    <h3>Change</h3>
    <${Form} submit="Save" send=${(values) => patch(path, bodyOf(values))}
      done=${(answer) => { toast("Saved. It holds for what happens from now on."); changed(answer); }}>${(errors) => html`
      <${Fields} webhook=${webhook} errors=${errors} />`}</${Form}>
  </${Dialog}>`;
}

const problems = {
  address: "its address leads where no request may go", timeout: "no answer in time", certificate: "its certificate is not trusted",
  connection: "no connection",
  status: "it said no", unreadable: "what is to be told cannot be read",
};

/** @param {Delivery} d */
const answerOf = (d) => [d.status_code, d.error && problems[d.error]].filter(Boolean).join(": ") || "–";

/** @param {Delivery} d */
const tones = (d) => (d.status === "delivered" ? "succeeded" : d.status === "failed" ? "failed" : d.attempts > 0 ? "warning" : "");

/** @param {{webhook: Webhook, turn: number, look: () => Promise<any>}} props */
function Log({ webhook, turn, look }) {
  const [status, choose] = useState("");
  /** @type {import("../../ui/table.js").Column[]} */
  const shown = [
    { name: "created_at", head: "Since", cell: (d) => dateTime(d.created_at) },
    { name: "event", head: "Event" },
    { name: "object_id", head: "About", cell: (d) => html`<code>${d.object_id}</code>` },
    { name: "status", head: "State", cell: (d) => html`<${Badge} of=${tones(d)} text=${words(d.status)} />` },
    { name: "attempts", head: "Attempts", number: true },
    { name: "error", head: "Last answer", cell: answerOf },
    { name: "next_retry_at", head: "Next", cell: (d) => (d.next_retry_at ? dateTime(d.next_retry_at) : "–") },
    { name: "id", head: html`<span class="unseen">Acts</span>`, cell: (d) => webhook.active && d.event !== "webhook.test"
      && html`<${ActionButton} act=${() => post(`webhooks/deliveries/${d.id}/retry/`)} said="It is sent again." done=${look}
        aria-label=${`Send ${d.event} ${d.object_id} again`}>Send again</${ActionButton}>` },
  ];
  return html`<${Field} label="Show" name="status" kind="select" value=${status} onChange=${(/** @type {any} */ event) =>
    choose(event.target.value)}
      options=${[["", "All"], ["pending", "What waits"], ["delivered", "What was taken"], ["failed", "What was given up"]]} />
    <${List} path=${`webhooks/${webhook.id}/deliveries/`} query=${{ status }} turn=${turn} size=${10} caption="Deliveries"
      nothing="Nothing yet" columns=${shown} />`;
}

const dangers = {
  off: ["Switch it off", "Nothing is sent from now on. What happens meanwhile waits, and is sent when it is switched on again."],
  rotate: ["Another secret", "For 24 hours requests are signed with both secrets: give the receiver the new one in that time."],
  remove: ["Remove it", "It is told nothing more, and the log of what it was told goes with it."],
};

/** @param {{webhook: Webhook, changed: (webhook: Webhook) => void, look: () => Promise<any>, rotated: (made: Secret) => void,
 * removed: () => void}} props */
function Acts({ webhook, changed, look, rotated, removed }) {
  const [sure, ask] = useState(/** @type {keyof typeof dangers | ""} */ (""));
  const path = `webhooks/${webhook.id}/`;
  const acts = {
    off: () => patch(path, { active: false }).then(changed),
    rotate: () => post(`${path}rotate-secret/`).then(rotated),
    remove: () => remove(path).then(removed),
  };
  const tried = (/** @type {Delivery} */ d) => {
    toast(d.status === "delivered" ? "The receiver took the test." : `The receiver did not take the test: ${answerOf(d)}.`,
      d.status === "delivered" ? undefined : "problem");
    return look();
  };
  return html`<div class="actions">
      <${ActionButton} act=${() => post(`${path}test/`).then(tried)}>Send a test</${ActionButton}>
      ${webhook.active ? html`<button onClick=${() => ask("off")}>Switch off</button>`
        : html`<${ActionButton} kind="main" act=${() => patch(path, { active: true }).then(changed)} said="It goes on where it stopped.">
          Switch on</${ActionButton}>`}
      <button onClick=${() => ask("rotate")}>Rotate the secret</button><button onClick=${() => ask("remove")}>Remove</button>
    </div>
    ${sure && html`<div class="notice warning" role="alert"><p>${dangers[sure][1]}</p>
      <div class="actions"><button onClick=${() => ask("")}>Leave it</button><${ActionButton} kind="danger" act=${acts[sure]} said="Done."
        done=${() => ask("")}>${dangers[sure][0]}</${ActionButton}></div></div>`}`;
}
