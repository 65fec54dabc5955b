// What each role may do, so that doors that would not open are not shown. The service decides; this repeats its matrix.
// Source: docs/decisions/roles.md, "Who may call what".
import { is, me } from "./session.js";

/** @type {Record<string, string>} */
export const roleNames = {
  admin: "Administrator", clinical_manager: "Clinical manager", provider: "Provider", nurse: "Nurse", ma: "Medical assistant",
  data_monitor: "Data monitor", patient: "Patient",
};

const clinicians = ["admin", "clinical_manager", "provider", "nurse"];
const staff = [...clinicians, "ma"];

const allowed = {
  readClinical: staff, // alerts, escalations, thresholds, the triage list
  changePatient: staff, archivePatient: clinicians, deletePatient: ["admin", "clinical_manager"],
  enterReadings: staff, correctReadings: clinicians, confirmImplausible: clinicians,
  acknowledge: staff, annotate: staff, resolve: clinicians, snooze: clinicians, review: clinicians,
  escalate: staff, changeEscalation: clinicians, setOnCall: ["admin", "clinical_manager"],
  changeThresholds: clinicians, changeCareTeam: ["admin", "clinical_manager", "provider"], changeConsents: staff, assignDevices: staff,
  readTime: [...staff, "data_monitor"], logTime: staff,
  explainBilling: ["admin", "clinical_manager", "provider", "data_monitor"],
  readUsers: ["admin", "clinical_manager"], manageUsers: ["admin"], manageClients: ["admin"], manageWebhooks: ["admin"],
  readRevenue: ["admin", "data_monitor"], manageBilling: ["admin", "data_monitor"], createBilling: ["admin", "clinical_manager", "provider", "data_monitor"],
  connectEMR: ["admin"], readEMR: ["admin", "clinical_manager"], importPatients: ["admin", "clinical_manager", "ma"],
  transmit: [...clinicians, "data_monitor"], processPending: ["admin"], requeue: ["admin", "data_monitor"],
  readQuarantine: ["admin", "clinical_manager", "ma", "data_monitor"], manageQuarantine: ["admin", "clinical_manager", "ma"],
  readDefaults: staff, changeDefaults: ["admin"], readAudit: ["admin"], readDeliveries: ["admin"],
};

/** @param {keyof typeof allowed} what */
export const can = (what) => is(...allowed[what]);

/** Medical assistants do not acknowledge critical alerts. @param {{level: string}} alert */
export const canAcknowledge = (alert) => can("acknowledge") && !(is("ma") && alert.level === "critical");

/** Whether the time entry is the caller's to change. @param {{user: number, billed: boolean}} entry */
export const canChangeTime = (entry) => !entry.billed && (is("admin") || (can("logTime") && entry.user === me.value?.id));

/** Whether the caller may vouch for the minutes of a time entry. @param {{user: number, needs_attestation: boolean}} entry */
export const canAttest = (entry) => entry.needs_attestation && (is("clinical_manager") || (can("logTime") && entry.user === me.value?.id));
