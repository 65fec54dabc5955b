// Permissions of the signed-in user. The console hides actions that the server would refuse; the server decides each time.
import { hasRole, me, rights } from "./session.js";

/** @type {Record<string, string>} */
export const roleNames = {
  admin: "Administrator", clinical_manager: "Clinical manager", provider: "Provider", nurse: "Nurse", ma: "Medical assistant",
  data_monitor: "Data monitor", patient: "Patient",
};

/** The console's name of each permission, and the server's action. */
const actions = {
  readClinical: "read_alerts", // alerts, escalations, thresholds, the triage list
  changePatient: "update_patients", archivePatient: "archive_patients", holdPatient: "hold_patients", deletePatient: "delete_patients",
  enterReadings: "ingest_readings", correctReadings: "correct_observations", confirmImplausible: "confirm_implausible_readings",
  acknowledge: "acknowledge_alerts", annotate: "annotate_alerts", resolve: "resolve_alerts", snooze: "snooze_alerts",
  review: "review_triage",
  escalate: "create_escalations", changeEscalation: "update_escalations", setOnCall: "set_on_call_rota",
  readMessages: "read_messages", sendMessages: "send_messages", markMessages: "mark_messages_as_read",
  readUnmatchedTexts: "read_unmatched_texts", closeTexts: "close_unmatched_texts",
  changeThresholds: "update_thresholds", changeCareTeam: "update_care_team", changeConsents: "manage_consents",
  readCaregivers: "read_caregivers", manageCaregivers: "manage_caregivers",
  readQuestionnaires: "read_questionnaires", assignQuestionnaires: "assign_questionnaires",
  assignDevices: "assign_devices", readContext: "read_emr_context",
  readDays: "read_days_with_data", readTime: "read_time_entries", logTime: "create_time_entries",
  explainBilling: "read_billing", readUsers: "read_users", manageUsers: "manage_users", readStaff: "read_staff",
  manageJobs: "manage_jobs", readSettings: "read_settings", manageClients: "manage_clients", manageWebhooks: "manage_webhooks",
  readRevenue: "read_billing_reports", manageBilling: "manage_billing", createBilling: "create_billing",
  connectEMR: "connect_emr", readEMR: "read_emr_connection", importPatients: "import_patients",
  transmit: "transmit_observations", processPending: "process_pending_transmissions", requeue: "queue_transmissions_again",
  readQuarantine: "read_quarantine", manageQuarantine: "manage_quarantine",
  readDefaults: "read_default_thresholds", changeDefaults: "update_default_thresholds", readAudit: "read_audit_log",
  readNoteTemplates: "read_note_templates", manageNoteTemplates: "manage_note_templates",
  readDeliveries: "read_push_deliveries",
};

/** The scope in which the user may perform an action: "all", "own", "non_critical", or "" when the action is not permitted.
 *  @param {string} action */
export const scopeOf = (action) => rights.value[action] ?? "";

/** Whether a staff user has a permission; portal users have pages of their own. @param {keyof typeof actions} what */
export const can = (what) => !hasRole("patient") && scopeOf(actions[what]) !== "";

/** Medical assistants do not acknowledge critical alerts. @param {{level: string}} alert */
export const canAcknowledge = (alert) => can("acknowledge") && (scopeOf(actions.acknowledge) === "all" || alert.level !== "critical");

const coversEntry = (/** @type {string} */ action, /** @type {{user: number}} */ entry) =>
  scopeOf(action) === "all" || (scopeOf(action) === "own" && entry.user === me.value?.id);

/** Whether the user may change the time entry. @param {{user: number, billed: boolean}} entry */
export const canChangeTime = (entry) => !entry.billed && coversEntry("change_time_entries", entry);

/** Whether the user may attest the minutes of a time entry. @param {{user: number, needs_attestation: boolean}} entry */
export const canAttest = (entry) => entry.needs_attestation && coversEntry("attest_time_entries", entry);
