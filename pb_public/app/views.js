// The code of each view, loaded on first use.

/** By the view of a section. @type {Record<string, () => Promise<any>>} */
export const load = {
  triage: () => import("./views/triage.js").then((m) => m.Triage),
  patients: () => import("./views/patients.js").then((m) => m.Patients),
  enrolment: () => import("./views/enrollment.js").then((m) => m.Enrollment),
  alerts: () => import("./views/alerts.js").then((m) => m.Alerts),
  escalations: () => import("./views/escalations.js").then((m) => m.Escalations),
  billing: () => import("./views/billing.js").then((m) => m.Billing),
  reports: () => import("./views/reports.js").then((m) => m.Reports),
  emr: () => import("./views/emr.js").then((m) => m.EMR),
  operations: () => import("./views/operations.js").then((m) => m.Operations),
  "my-health": () => import("./views/my_health.js").then((m) => m.MyHealth),
  inbox: () => import("./views/inbox.js").then((m) => m.Inbox),
  account: () => import("./views/account.js").then((m) => m.Account),
  patient: () => import("./views/patient.js").then((m) => m.PatientSheet),
  "on-call": () => import("./views/on_call.js").then((m) => m.OnCall),
  entry: () => import("./views/entry.js").then((m) => m.Entry),
};
