// Push on this browser, and the list of devices that get it. What is pushed names nobody: the details are read here.
import { all, get, post, Problem, remove } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { ActionButton } from "../../ui/form.js";
import { dateTime, words } from "../../ui/format.js";
import { Loaded, Nothing, useLoad } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { html, useEffect, useState } from "../../view.js";

/** @typedef {import("../../../../internal/console/contract.d.ts").components["schemas"]["PushToken"]} Device */

const supported = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

/** A name for this browser that says nothing about its owner: it is made from its subscription. @param {PushSubscription} subscription */
async function nameOf(subscription) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
  return `browser-${[...new Uint8Array(digest).slice(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** @returns {Promise<PushSubscription | null>} */
async function current() {
  const worker = supported ? await navigator.serviceWorker.getRegistration("/") : null;
  return (await worker?.pushManager.getSubscription()) ?? null;
}

/** Asks for permission, subscribes at the browser's push service, and tells our service. */
async function optIn() {
  if (await Notification.requestPermission() !== "granted") {
    throw new Problem(0, { detail: "The browser does not allow notifications for this page. Allow them in its settings and try again." });
  }
  const { public_key, type } = await get("notifications/vapid-public-key/").catch((error) => {
    throw error.status === 404
      ? new Problem(404, { detail: "Push is not set up at this service. An administrator can set the keys for it." }) : error;
  });
  await navigator.serviceWorker.register("/push-worker.js");
  const worker = await navigator.serviceWorker.ready;
  await (await worker.pushManager.getSubscription())?.unsubscribe(); // one made with another key is of no use
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: public_key }).catch(() => {
    throw new Problem(0, { detail: "The browser could not reach its push service. Try again later." });
  });
  await post("notifications/tokens/register/", { token: subscription.toJSON(), type, device_id: await nameOf(subscription), platform: "web",
    app_version: "console" })
    .catch((error) => subscription.unsubscribe().finally(() => { throw error; })); // one that the service does not know is of no use
}

export function Devices() {
  const devices = useLoad(() => all("notifications/tokens/"), []);
  const [own, know] = useState(/** @type {string | null} */ (null));
  const look = () => { void current().then((subscription) => (subscription ? nameOf(subscription) : null)).then(know); };
  useEffect(look, []);
  const changed = () => { look(); devices.reload(); };
  const here = devices.data?.some((/** @type {Device} */ device) => device.device_id === own);
  const stop = async (/** @type {Device} */ device) => {
    await remove(`notifications/tokens/${device.id}/`);
    if (device.device_id === own) {
      await (await current())?.unsubscribe();
    }
  };
  return html`<section class="card"><h2>This browser</h2>
      <p>A push tells you that something waits, also when this page is closed. It names no patient: what it is about is shown after signing
        in.</p>
      ${supported
        ? html`<div class="actions">${here ? html`<span role="status"><${Badge} of="online" text="Push is on in this browser" /></span>`
          : html`<${ActionButton} kind="main" act=${optIn} said="Push is on in this browser." done=${changed}>Switch on push
            </${ActionButton}>`}</div>`
        : html`<p class="notice warning">This browser cannot take pushes, or the page is not served over HTTPS.</p>`}
    </section>
    <section class="card"><h2>Your devices</h2>
      <${Loaded} from=${devices} empty=${(data) => data.length === 0} nothing=${html`<${Nothing} title="No device gets pushes" />`}>
        ${(data) => html`
        <${Table} caption="Devices that get pushes" rows=${data} columns=${columns(own, stop, changed)} />`}
      </${Loaded}>
    </section>`;
}

/** @param {string | null} own @param {(device: Device) => Promise<void>} stop @param {() => void} changed
 *  @returns {import("../../ui/table.js").Column[]} */
const columns = (own, stop, changed) => [
  { name: "device_id", head: "Device", cell: (device) => (device.device_id === own ? html`<strong>This browser</strong>`
    : device.device_id) },
  { name: "platform", head: "Platform", cell: (device) => `${device.platform}${device.app_version ? ` ${device.app_version}` : ""}` },
  { name: "type", head: "Way", cell: (device) => words(device.type) },
  { name: "deliverable", head: "State", cell: (device) => html`<${Badge} of=${device.deliverable ? "online" : "offline"}
    text=${device.deliverable ? "Gets pushes" : "No way to push there"} />` },
  { name: "updated_at", head: "Since", cell: (device) => dateTime(device.updated_at) },
  { name: "stop", head: html`<span class="unseen">Actions</span>`, cell: (device) =>
    html`<${ActionButton} act=${() => stop(device)} said="No more pushes there." done=${changed}
    aria-label=${`Remove ${device.device_id === own ? "this browser" : device.device_id}`}>Remove</${ActionButton}>` },
];
