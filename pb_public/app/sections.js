// The sections of the console and who sees each. The server decides what a user may do; the console hides sections that it would refuse.
import { scopeOf } from "./permissions.js";
import { hasRole } from "./session.js";

/** key opens it after a G; isVisible: whether the user sees it. @typedef {{view: string, name: string, key: string, isVisible: () =>
 *  boolean}} Section */

const all = (/** @type {string} */ action) => () => scopeOf(action) === "all";
const everyone = () => true;

/** In the order of the menu. @type {Section[]} */
export const sections = [
  { view: "triage", name: "Triage", key: "t", isVisible: all("read_triage") },
  { view: "patients", name: "Patients", key: "p", isVisible: all("read_patients") },
  { view: "enrolment", name: "Enrollment", key: "n", isVisible: all("read_enrolment") },
  { view: "alerts", name: "Alerts", key: "a", isVisible: all("read_alerts") },
  { view: "escalations", name: "Escalations", key: "e", isVisible: all("read_escalations") },
  { view: "on-call", name: "On call", key: "c", isVisible: all("read_on_call_rota") },
  { view: "billing", name: "Billing", key: "b", isVisible: all("read_billing") },
  { view: "reports", name: "Reports", key: "r", isVisible: all("read_billing_reports") },
  { view: "emr", name: "EMR", key: "m", isVisible: all("read_transmissions") },
  { view: "operations", name: "Operations", key: "o", isVisible: all("read_quarantine") },
  { view: "my-health", name: "My readings", key: "y", isVisible: () => hasRole("patient") },
  { view: "inbox", name: "Inbox", key: "i", isVisible: everyone },
  { view: "account", name: "Account", key: "u", isVisible: everyone },
];

/** Views that are not in the menu. @type {Section[]} */
const hidden = [
  { view: "patient", name: "Patient", key: "", isVisible: all("read_patients") },
  { view: "entry", name: "Billing entry", key: "", isVisible: all("read_billing") },
];

/** The sections in the user's menu. */
export const sectionsOf = () => sections.filter((section) => section.isVisible());

/** In the order of use on a phone: its bar has space for four and More. */
const onPhone = ["triage", "alerts", "escalations", "patients", "billing", "reports", "inbox"];
/** The sections in the phone's bar. @param {Section[]} visible @returns {Section[]} */
export const phoneSections = (visible) => onPhone.flatMap((view) => visible.filter((s) => s.view === view)).slice(0, 4);

/** The view that opens after sign-in: the work of the user's role. */
export const homeView = () => ["triage", "billing"].find((view) => sectionOf(view)) ?? sectionsOf()[0].view;

/** Whether a view exists, for any role. @param {string} view */
export const isView = (view) => [...sections, ...hidden].some((s) => s.view === view);

/** The section of a view, or null when there is none or the user may not see it. @param {string} view */
export const sectionOf = (view) => [...sections, ...hidden].find((s) => s.view === view && s.isVisible()) ?? null;
