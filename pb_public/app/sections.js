// The sections of the console and who sees each. The service decides what anybody may do; this only keeps doors out of sight that would not
// open.
import { reach } from "./can.js";
import { is } from "./session.js";

/** key opens it after a G; may says whether the person sees it. @typedef {{view: string, name: string, key: string, may: () =>
 *  boolean}} Section */

const all = (/** @type {string} */ action) => () => reach(action) === "all";
const everyone = () => true;

/** In the order of the menu; the first that somebody may see is their home. @type {Section[]} */
export const sections = [
  { view: "triage", name: "Triage", key: "t", may: all("read_triage") },
  { view: "patients", name: "Patients", key: "p", may: all("read_patients") },
  { view: "enrolment", name: "Enrolment", key: "n", may: all("read_enrolment") },
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

/** Views that no menu names. @type {Section[]} */
const hidden = [
  { view: "patient", name: "Patient", key: "", may: all("read_patients") },
  { view: "entry", name: "Billing entry", key: "", may: all("read_billing") },
];

/** What the menu of the person has. */
export const sectionsOf = () => sections.filter((section) => section.may());

/** The section of a view, or null when there is none or the person does not see it. @param {string} view */
export const sectionOf = (view) => [...sections, ...hidden].find((s) => s.view === view && s.may()) ?? null;
