// The inbox: messages, notification settings, and push devices.
import { html } from "../view.js";
import { Tabs } from "../ui/tabs.js";
import { Messages } from "./inbox/messages.js";
import { Preferences } from "./inbox/preferences.js";
import { Devices } from "./inbox/devices.js";
import { UnmatchedTexts } from "./inbox/unmatched.js";
import { can } from "../permissions.js";

export function Inbox() {
  return html`<div class="heading"><h1>Inbox</h1></div>
    <${Tabs} label="Inbox" tabs=${[
      { key: "messages", name: "Messages", show: () => html`<${Messages} />` },
      ...(can("readUnmatchedTexts") ? [{ key: "texts", name: "Texts without a patient", show: () => html`<${UnmatchedTexts} />` }] : []),
      { key: "preferences", name: "Notification settings", show: () => html`<${Preferences} />` },
      { key: "devices", name: "Push devices", show: () => html`<${Devices} />` },
    ]} />`;
}
