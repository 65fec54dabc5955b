// What the person may do, so that doors that would not open are not shown. The service says it at sign-in and decides each time.
import { is, me, rights } from "./session.js";

/** @type {Record<string, string>} */
export const roleNames = {
  admin: "Administrator", clinical_manager: "Clinical manager", provider: "Provider", nurse: "Nurse", ma: "Medical assistant",
  data_monitor: "Data monitor", patient: "Patient",
};

/** What the console calls a door, and what the service calls what is behind it. */
const needs = {
  readClinical: "read_alerts", // alerts, escalations, thresholds, the triage list
  changePatient: "update_patients", archivePatient: "archive_patients", deletePatient: "delete_patients",
  enterReadings: "ingest_readings", correctReadings: "correct_observations", confirmImplausible: "confirm_implausible_readings",
  acknowledge: "acknowledge_alerts", annotate: "annotate_alerts", resolve: "resolve_alerts", snooze: "snooze_alerts",
  review: "review_triage",
  escalate: "create_escalations", changeEscalation: "update_escalations", setOnCall: "set_on_call_rota",
  changeThresholds: "update_thresholds", changeCareTeam: "update_care_team", changeConsents: "manage_consents",
  assignDevices: "assign_devices",
  readDays: "read_days_with_data", readTime: "read_time_entries", logTime: "create_time_entries",
  explainBilling: "read_billing", readUsers: "read_users", manageUsers: "manage_users", readStaff: "read_staff",
  manageClients: "manage_clients", manageWebhooks: "manage_webhooks",
  readRevenue: "read_billing_reports", manageBilling: "manage_billing", createBilling: "create_billing",
  connectEMR: "connect_emr", readEMR: "read_emr_connection", importPatients: "import_patients",
  transmit: "transmit_observations", processPending: "process_pending_transmissions", requeue: "queue_transmissions_again",
  readQuarantine: "read_quarantine", manageQuarantine: "manage_quarantine",
  readDefaults: "read_default_thresholds", changeDefaults: "update_default_thresholds", readAudit: "read_audit_log",
  readNoteTemplates: "read_note_templates", manageNoteTemplates: "manage_note_templates",
  readDeliveries: "read_push_deliveries",
};

/** How far an action of the service reaches for the person: "all", "own", "non_critical", or "" when it is refused.
 *  @param {string} action */
export const reach = (action) => rights.value[action] ?? "";

/** Whether a door of the staff's opens; the portal's users have their own. @param {keyof typeof needs} what */
export const can = (what) => !is("patient") && reach(needs[what]) !== "";

/** Medical assistants do not acknowledge critical alerts. @param {{level: string}} alert */
export const canAcknowledge = (alert) => can("acknowledge") && (reach(needs.acknowledge) === "all" || alert.level !== "critical");

const ofMine = (/** @type {string} */ action, /** @type {{user: number}} */ entry) =>
  reach(action) === "all" || (reach(action) === "own" && entry.user === me.value?.id);

/** Whether the time entry is the caller's to change. @param {{user: number, billed: boolean}} entry */
export const canChangeTime = (entry) => !entry.billed && ofMine("change_time_entries", entry);

/** Whether the caller may vouch for the minutes of a time entry. @param {{user: number, needs_attestation: boolean}} entry */
export const canAttest = (entry) => entry.needs_attestation && ofMine("attest_time_entries", entry);
