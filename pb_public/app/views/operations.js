// Operations in four groups: the system, people, rules, and connections.
import { can } from "../permissions.js";
import { lazy } from "../ui/lazy.js";
import { Tabs } from "../ui/tabs.js";
import { html } from "../view.js";
import { Health } from "./operations/health.js";

const Audit = lazy(() => import("./operations/audit.js").then((m) => m.Audit));
const Clients = lazy(() => import("./operations/clients.js").then((m) => m.Clients));
const DefaultThresholds = lazy(() => import("./operations/default_thresholds.js").then((m) => m.DefaultThresholds));
const Equipment = lazy(() => import("./operations/equipment.js").then((m) => m.Equipment));
const Jobs = lazy(() => import("./operations/jobs.js").then((m) => m.Jobs));
const NoteTemplates = lazy(() => import("./operations/note_templates.js").then((m) => m.NoteTemplates));
const Numbers = lazy(() => import("./operations/statistics.js").then((m) => m.Statistics));
const Pushes = lazy(() => import("./operations/pushes.js").then((m) => m.Pushes));
const Quarantine = lazy(() => import("./operations/quarantine.js").then((m) => m.Quarantine));
const Settings = lazy(() => import("./operations/settings.js").then((m) => m.Settings));
const ThresholdTemplates = lazy(() => import("./operations/templates.js").then((m) => m.ThresholdTemplates));
const Users = lazy(() => import("./operations/users.js").then((m) => m.Users));
const Webhooks = lazy(() => import("./operations/webhooks.js").then((m) => m.Webhooks));

export function Operations() {
  return html`<div class="heading"><h1>Operations</h1></div>
    <${Tabs} label="Operations" tabs=${[
      { key: "health", name: "Health", group: "System", show: () => html`<${Health} />` },
      { key: "numbers", name: "Statistics", group: "System", show: () => html`<${Numbers} />` },
      can("manageJobs") && { key: "jobs", name: "Jobs", group: "System", show: () => html`<${Jobs} />` },
      can("readSettings") && { key: "settings", name: "Settings", group: "System", show: () => html`<${Settings} />` },
      can("readAudit") && { key: "audit", name: "Audit", group: "System", show: () => html`<${Audit} />` },
      can("readQuarantine") && { key: "quarantine", name: "Quarantine", group: "System", show: () => html`<${Quarantine} />` },
      can("readDeliveries") && { key: "pushes", name: "Pushes", group: "System", show: () => html`<${Pushes} />` },
      can("readUsers") && { key: "users", name: "Users", group: "People", show: () => html`<${Users} />` },
      can("readDefaults") && { key: "thresholds", name: "Default thresholds", group: "Rules", show: () => html`<${DefaultThresholds} />` },
      can("readDefaults") && { key: "templates", name: "Threshold templates", group: "Rules", show: () => html`<${ThresholdTemplates} />` },
      can("readNoteTemplates") && { key: "notes", name: "Note templates", group: "Rules", show: () => html`<${NoteTemplates} />` },
      { key: "equipment", name: "Hubs and devices", group: "Connections", show: () => html`<${Equipment} />` },
      can("manageClients") && { key: "clients", name: "Clients", group: "Connections", show: () => html`<${Clients} />` },
      can("manageWebhooks") && { key: "webhooks", name: "Webhooks", group: "Connections", show: () => html`<${Webhooks} />` },
    ]} />`;
}
