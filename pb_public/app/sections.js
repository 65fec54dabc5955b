// The sections of the console and who sees each. The service decides what anybody may do; this only keeps doors out of
// sight that would not open.

/** @typedef {{view: string, name: string, key: string, roles: string[], load: () => Promise<any>}} Section */

const clinical = ["admin", "clinical_manager", "provider", "nurse", "ma"];
const everyone = [...clinical, "data_monitor", "patient"];

/** In the order of the menu; the first that a role may see is its home. @type {Section[]} */
export const sections = [
  { view: "triage", name: "Triage", key: "t", roles: clinical, load: () => import("./views/triage.js").then((m) => m.Triage) },
  { view: "patients", name: "Patients", key: "p", roles: [...clinical, "data_monitor"], load: () => import("./views/patients.js").then((m) => m.Patients) },
  { view: "alerts", name: "Alerts", key: "a", roles: clinical, load: () => import("./views/alerts.js").then((m) => m.Alerts) },
  { view: "escalations", name: "Escalations", key: "e", roles: clinical, load: () => import("./views/escalations.js").then((m) => m.Escalations) },
  { view: "billing", name: "Billing", key: "b", roles: ["data_monitor", "admin", "clinical_manager", "provider"], load: () => import("./views/billing.js").then((m) => m.Billing) },
  { view: "reports", name: "Reports", key: "r", roles: ["data_monitor", "admin"], load: () => import("./views/reports.js").then((m) => m.Reports) },
  { view: "emr", name: "EMR", key: "m", roles: ["admin", "clinical_manager", "ma", "provider", "nurse", "data_monitor"], load: () => import("./views/emr.js").then((m) => m.EMR) },
  { view: "operations", name: "Operations", key: "o", roles: ["admin", "clinical_manager", "ma", "data_monitor"], load: () => import("./views/operations.js").then((m) => m.Operations) },
  { view: "my-health", name: "My readings", key: "y", roles: ["patient"], load: () => import("./views/my_health.js").then((m) => m.MyHealth) },
  { view: "inbox", name: "Inbox", key: "i", roles: everyone, load: () => import("./views/inbox.js").then((m) => m.Inbox) },
  { view: "account", name: "Account", key: "u", roles: everyone, load: () => import("./views/account.js").then((m) => m.Account) },
];

/** Views that no menu names. @type {Section[]} */
const hidden = [
  { view: "patient", name: "Patient", key: "", roles: [...clinical, "data_monitor"], load: () => import("./views/patient.js").then((m) => m.PatientSheet) },
  { view: "entry", name: "Billing entry", key: "", roles: ["data_monitor", "admin", "clinical_manager", "provider"], load: () => import("./views/entry.js").then((m) => m.Entry) },
];

/** @param {string} role */
export const sectionsOf = (role) => sections.filter((section) => section.roles.includes(role));

/** The section of a view, or null when there is none or the role does not see it. @param {string} view @param {string} role */
export const sectionOf = (view, role) => [...sections, ...hidden].find((s) => s.view === view && s.roles.includes(role)) ?? null;
