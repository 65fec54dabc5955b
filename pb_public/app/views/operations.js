// Whether the system is well, and what needs a hand: services, numbers, kept events, devices, accounts, bounds, the audit trail.
import { can } from "../can.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Audit } from "./operations/audit.js";
import { Clients } from "./operations/clients.js";
import { DefaultThresholds } from "./operations/default_thresholds.js";
import { Equipment } from "./operations/equipment.js";
import { Health } from "./operations/health.js";
import { NoteTemplates } from "./operations/note_templates.js";
import { Numbers } from "./operations/numbers.js";
import { Pushes } from "./operations/pushes.js";
import { Quarantine } from "./operations/quarantine.js";
import { ThresholdTemplates } from "./operations/templates.js";
import { Users } from "./operations/users.js";
import { Webhooks } from "./operations/webhooks.js";

export function Operations() {
  return html`<div class="heading"><h1>Operations</h1></div>
    <${Tabs} label="Operations" tabs=${[
      { key: "health", name: "Health", show: () => html`<${Health} />` },
      { key: "numbers", name: "Numbers", show: () => html`<${Numbers} />` },
      can("readQuarantine") && { key: "quarantine", name: "Quarantine", show: () => html`<${Quarantine} />` },
      { key: "equipment", name: "Hubs and devices", show: () => html`<${Equipment} />` },
      can("readUsers") && { key: "users", name: "Users", show: () => html`<${Users} />` },
      can("manageClients") && { key: "clients", name: "Clients", show: () => html`<${Clients} />` },
      can("manageWebhooks") && { key: "webhooks", name: "Webhooks", show: () => html`<${Webhooks} />` },
      can("readDefaults") && { key: "thresholds", name: "Default thresholds", show: () => html`<${DefaultThresholds} />` },
      can("readDefaults") && { key: "templates", name: "Templates", show: () => html`<${ThresholdTemplates} />` },
      can("readNoteTemplates") && { key: "notes", name: "Note templates", show: () => html`<${NoteTemplates} />` },
      can("readAudit") && { key: "audit", name: "Audit", show: () => html`<${Audit} />` },
      can("readDeliveries") && { key: "pushes", name: "Pushes", show: () => html`<${Pushes} />` },
    ]} />`;
}
