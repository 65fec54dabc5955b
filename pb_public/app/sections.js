// The sections of the console and who sees each. The server decides what a user may do; the console hides sections that it would refuse.
import { reach } from "./can.js";
import { is } from "./session.js";

/** key opens it after a G; may: whether the user sees it. @typedef {{view: string, name: string, key: string, may: () =>
 *  boolean}} Section */

const all = (/** @type {string} */ action) => () => reach(action) === "all";
const everyone = () => true;

/** In the order of the menu; the first one that a user sees is the home page. @type {Section[]} */
export const sections = [
  { view: "triage", name: "Triage", key: "t", may: all("read_triage") },
  { view: "patients", name: "Patients", key: "p", may: all("read_patients") },
  { view: "enrolment", name: "Enrollment", key: "n", may: all("read_enrolment") },
  { view: "alerts", name: "Alerts", key: "a", may: all("read_alerts") },
  { view: "escalations", name: "Escalations", key: "e", may: all("read_escalations") },
  { view: "on-call", name: "On call", key: "c", may: all("read_on_call_rota") },
  { view: "billing", name: "Billing", key: "b", may: all("read_billing") },
  { view: "reports", name: "Reports", key: "r", may: all("read_billing_reports") },
  { view: "emr", name: "EMR", key: "m", may: all("read_transmissions") },
  { view: "operations", name: "Operations", key: "o", may: all("read_quarantine") },
  { view: "my-health", name: "My readings", key: "y", may: () => is("patient") },
  { view: "inbox", name: "Inbox", key: "i", may: everyone },
  { view: "account", name: "Account", key: "u", may: everyone },
];

/** Views that are not in the menu. @type {Section[]} */
const hidden = [
  { view: "patient", name: "Patient", key: "", may: all("read_patients") },
  { view: "entry", name: "Billing entry", key: "", may: all("read_billing") },
];

/** The sections in the user's menu. */
export const sectionsOf = () => sections.filter((section) => section.may());

/** The section of a view, or null when there is none or the user may not see it. @param {string} view */
export const sectionOf = (view) => [...sections, ...hidden].find((s) => s.view === view && s.may()) ?? null;
