// Push in this browser, and the user's push devices. A push names no patient: the details are shown here.
import { getAll, get, post, Problem, remove } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton } from "../../ui/form.js";
import { dateTime, humanize } from "../../ui/format.js";
import { Loaded, EmptyState, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { html, useEffect, useState } from "../../view.js";

/** @typedef {import("../../../../tools/console/contract.d.ts").components["schemas"]["PushToken"]} Device */

const supported = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

/** A name for this browser that does not identify its owner: a hash of its subscription. @param {PushSubscription} subscription */
async function nameOf(subscription) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
  return `browser-${[...new Uint8Array(digest).slice(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** @returns {Promise<PushSubscription | null>} */
async function current() {
  const worker = supported ? await navigator.serviceWorker.getRegistration("/") : null;
  return (await worker?.pushManager.getSubscription()) ?? null;
}

/** Requests permission, subscribes at the browser's push service, and registers the subscription. */
async function optIn() {
  if (await Notification.requestPermission() !== "granted") {
    throw new Problem(0, { detail: "The browser does not allow notifications for this page. Allow them in its settings and try again." });
  }
  const { public_key, type } = await get("notifications/vapid-public-key/").catch((error) => {
    throw error.status === 404
      ? new Problem(404, { detail: "Push is not set up on this server. An administrator can configure its keys." }) : error;
  });
  await navigator.serviceWorker.register("/push-worker.js");
  const worker = await navigator.serviceWorker.ready;
  await (await worker.pushManager.getSubscription())?.unsubscribe(); // a subscription with another key does not work
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: public_key }).catch(() => {
    throw new Problem(0, { detail: "The browser could not reach its push service. Try again later." });
  });
  await post("notifications/tokens/register/", { token: subscription.toJSON(), type, device_id: await nameOf(subscription), platform: "web",
    app_version: "console" })
    .catch((error) => subscription.unsubscribe().finally(() => { throw error; })); // an unregistered subscription is useless
}

export function Devices() {
  const devices = useLoad(() => getAll("notifications/tokens/"), []);
  const [ownId, setOwnId] = useState(/** @type {string | null} */ (null));
  const loadOwnId = () => { void current().then((subscription) => (subscription ? nameOf(subscription) : null)).then(setOwnId); };
  useEffect(loadOwnId, []);
  const changed = () => { loadOwnId(); devices.reload(); };
  const own = devices.data?.find((/** @type {Device} */ device) => device.device_id === ownId);
  const here = own && own.undeliverable_because !== "refused";
  const stop = async (/** @type {Device} */ device) => {
    await remove(`notifications/tokens/${device.id}/`);
    if (device.device_id === ownId) {
      await (await current())?.unsubscribe();
    }
  };
  return html`<section class="card"><h2>This browser</h2>
      <p>Push notifies you of new messages, also when this page is closed. It names no patient: details are shown after you sign
        in.</p>
      ${supported
        ? html`<div class="actions">${here ? html`<span role="status"><${Badge} of="online" text="Push is on in this browser" /></span>`
          : html`${own && html`<p class="notice warning">The push service refused the last push to this browser. Turn push on again.</p>`}
            <${ActionButton} kind="main" act=${optIn} doneText="Push is on in this browser." done=${changed}>Turn on push
            </${ActionButton}>`}</div>`
        : html`<p class="notice warning">This browser does not support push, or the page is not served over HTTPS.</p>`}
    </section>
    <section class="card"><h2>Your devices</h2>
      <${Loaded} from=${devices} empty=${(data) => data.length === 0} nothing=${html`<${EmptyState} title="No push devices yet" />`}>
        ${(data) => html`
        <${Table} caption="Push devices" rows=${data} columns=${columns(ownId, stop, changed)} />`}
      </${Loaded}>
    </section>`;
}

/** @param {string | null} own @param {(device: Device) => Promise<void>} stop @param {() => void} changed
 *  @returns {import("../../ui/table.js").Column[]} */
const columns = (own, stop, changed) => [
  { name: "device_id", head: "Device", cell: (device) => (device.device_id === own ? html`<strong>This browser</strong>`
    : device.device_id) },
  { name: "platform", head: "Platform", cell: (device) => `${device.platform}${device.app_version ? ` ${device.app_version}` : ""}` },
  { name: "type", head: "Type", cell: (device) => humanize(device.type) },
  { name: "deliverable", head: "State", cell: (device) => html`<${Badge} of=${device.deliverable ? "online" : "offline"}
    text=${device.deliverable ? "Receives push" : device.undeliverable_because === "refused" ? "Refused: turn push on again there"
      : "Cannot receive push"} />` },
  { name: "updated_at", head: "Since", cell: (device) => dateTime(device.updated_at) },
  { name: "stop", head: html`<span class="unseen">Actions</span>`, cell: (device) =>
    html`<${ActionButton} act=${() => stop(device)} doneText="Push removed." done=${changed}
    aria-label=${`Remove ${device.device_id === own ? "this browser" : device.device_id}`}>Remove</${ActionButton}>` },
];
