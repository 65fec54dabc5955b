// The sections of the console and who sees each. The service decides what anybody may do; this only keeps doors out of
// sight that would not open.

/** @typedef {{view: string, name: string, key: string, roles: string[]}} Section */

const clinical = ["admin", "clinical_manager", "provider", "nurse", "ma"];
const everyone = [...clinical, "data_monitor", "patient"];

/** In the order of the menu; the first that a role may see is its home. @type {Section[]} */
export const sections = [
  { view: "triage", name: "Triage", key: "t", roles: clinical },
  { view: "patients", name: "Patients", key: "p", roles: [...clinical, "data_monitor"] },
  { view: "alerts", name: "Alerts", key: "a", roles: clinical },
  { view: "escalations", name: "Escalations", key: "e", roles: clinical },
  { view: "billing", name: "Billing", key: "b", roles: ["data_monitor", "admin", "clinical_manager", "provider"] },
  { view: "reports", name: "Reports", key: "r", roles: ["data_monitor", "admin"] },
  { view: "emr", name: "EMR", key: "m", roles: ["admin", "clinical_manager", "ma", "provider", "nurse", "data_monitor"] },
  { view: "operations", name: "Operations", key: "o", roles: ["admin", "clinical_manager", "ma", "data_monitor"] },
  { view: "my-health", name: "My readings", key: "y", roles: ["patient"] },
  { view: "inbox", name: "Inbox", key: "i", roles: everyone },
  { view: "account", name: "Account", key: "u", roles: everyone },
];

/** Views that no menu names. @type {Section[]} */
const hidden = [
  { view: "patient", name: "Patient", key: "", roles: [...clinical, "data_monitor"] },
  { view: "on-call", name: "On call", key: "", roles: clinical },
  { view: "entry", name: "Billing entry", key: "", roles: ["data_monitor", "admin", "clinical_manager", "provider"] },
];

/** @param {string} role */
export const sectionsOf = (role) => sections.filter((section) => section.roles.includes(role));

/** The section of a view, or null when there is none or the role does not see it. @param {string} view @param {string} role */
export const sectionOf = (view, role) => [...sections, ...hidden].find((s) => s.view === view && s.roles.includes(role)) ?? null;
