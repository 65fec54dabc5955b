// Operations: health, statistics, quarantine, devices, users, clients, webhooks, default thresholds, templates, audit trail, pushes.
import { can } from "../permissions.js";
import { lazy } from "../ui/lazy.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Health } from "./operations/health.js";

const Audit = lazy(() => import("./operations/audit.js").then((m) => m.Audit));
const Clients = lazy(() => import("./operations/clients.js").then((m) => m.Clients));
const DefaultThresholds = lazy(() => import("./operations/default_thresholds.js").then((m) => m.DefaultThresholds));
const Equipment = lazy(() => import("./operations/equipment.js").then((m) => m.Equipment));
const NoteTemplates = lazy(() => import("./operations/note_templates.js").then((m) => m.NoteTemplates));
const Numbers = lazy(() => import("./operations/statistics.js").then((m) => m.Statistics));
const Pushes = lazy(() => import("./operations/pushes.js").then((m) => m.Pushes));
const Quarantine = lazy(() => import("./operations/quarantine.js").then((m) => m.Quarantine));
const ThresholdTemplates = lazy(() => import("./operations/templates.js").then((m) => m.ThresholdTemplates));
const Users = lazy(() => import("./operations/users.js").then((m) => m.Users));
const Webhooks = lazy(() => import("./operations/webhooks.js").then((m) => m.Webhooks));

export function Operations() {
  return html`<div class="heading"><h1>Operations</h1></div>
    <${Tabs} label="Operations" tabs=${[
      { key: "health", name: "Health", show: () => html`<${Health} />` },
      { key: "numbers", name: "Statistics", show: () => html`<${Numbers} />` },
      can("readQuarantine") && { key: "quarantine", name: "Quarantine", show: () => html`<${Quarantine} />` },
      { key: "equipment", name: "Hubs and devices", show: () => html`<${Equipment} />` },
      can("readUsers") && { key: "users", name: "Users", show: () => html`<${Users} />` },
      can("manageClients") && { key: "clients", name: "Clients", show: () => html`<${Clients} />` },
      can("manageWebhooks") && { key: "webhooks", name: "Webhooks", show: () => html`<${Webhooks} />` },
      can("readDefaults") && { key: "thresholds", name: "Default thresholds", show: () => html`<${DefaultThresholds} />` },
      can("readDefaults") && { key: "templates", name: "Threshold templates", show: () => html`<${ThresholdTemplates} />` },
      can("readNoteTemplates") && { key: "notes", name: "Note templates", show: () => html`<${NoteTemplates} />` },
      can("readAudit") && { key: "audit", name: "Audit", show: () => html`<${Audit} />` },
      can("readDeliveries") && { key: "pushes", name: "Pushes", show: () => html`<${Pushes} />` },
    ]} />`;
}
