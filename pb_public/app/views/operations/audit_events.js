// The events and record types of the audit trail, and how they are named. A test compares them with the service's.
import { humanize } from "../../ui/format.js";

/** What happened, by what it happened to. @type {Record<string, string>} */
const verbs = {
  access: "denied emergency",
  alert: "acknowledge auto_resolve create escalate note reopen resolve undo",
  audit: "read verify",
  auth: "backup_code_used backup_codes_replaced identity_linked identity_unlinked lockout login login_failed logout "
    + "passkey_refused passkey_register passkey_remove passkey_rename passkey_used password_accepted password_change "
    + "password_reset password_reset_request refresh refresh_reuse unlock",
  billing: "adjust appeal bill_secondary close create deny export import pay refund reject request_void resubmit return "
    + "reverse review run submit update void",
  care_team: "update",
  caregiver: "end grant",
  client: "create delete secret_rotate token token_refused update",
  consent: "grant revoke",
  device: "assign create replace set_up unassign",
  emr: "auth corrected requeue resolve search sync test token transform transmit",
  emr_context: "read refresh",
  emr_proposal: "accept dismiss",
  emr_words: "read",
  escalation: "create update",
  export: "delete fail finish read start",
  hub: "offline online",
  job: "run",
  message: "close create read receive update",
  notification: "sent",
  observation: "confirm create entered_in_error read update",
  on_call: "update",
  order: "record",
  patient: "archive create delete hold hold_end import read restore search share unarchive update",
  questionnaire: "answer assign end",
  report: "export",
  retention: "purge",
  rules: "refused restore",
  service: "health_change",
  settings: "refused update",
  snooze: "create end",
  threshold: "decline propose simulate update",
  time_entry: "attest create delete update",
  triage: "review review_undo",
  user: "activate create deactivate role_change update",
  warehouse: "export",
  webhook: "create delete discarded placed quarantined rejected released retry secret_rotate send test update",
};

export const eventCodes = Object.entries(verbs).flatMap(([noun, all]) => all.split(" ").map((verb) => `${noun}.${verb}`));

/** @type {Record<string, string>} */
const common = { "auth.login": "Signed in", "auth.login_failed": "Sign-in failed", "auth.logout": "Signed out",
  "patient.read": "Chart opened", "patient.search": "Patients searched" };

/** "Chart opened", "Time entry: update". @param {string} code */
export function eventName(code) {
  const [noun, verb = ""] = code.split(".");
  const of = { auth: "Sign-in", emr: "EMR", emr_words: "EMR words", emr_context: "EMR context" }[noun] ?? humanize(noun);
  return common[code] ?? `${of}: ${humanize(verb).toLowerCase()}`;
}

export const recordTypes = ("Activity Alert Announcement AuditEvent BillingEntry BillingReport BillingRun CareTeam Change "
  + "Claim ClaimBatch ClaimResponse "
  + "Client Collection Consent Device EMR EMRConnection EMRContext EMRPatient EMRProposal Eligibility EncryptionKey Endpoint "
  + "Enrolment Escalation Explanation Export Fee GatewayEvent Hub Job LoginKey Mail Message NoteTemplate Notification Observation "
  + "OnCall Order Patient Payer PayerRate Questionnaire QuestionnaireResponse RelatedPerson Remittance Service Settings Snooze "
  + "Superuser ThresholdTemplate Thresholds TimeEntry Topic Transmission User VisitReport Webhook WebhookDelivery").split(" ");

/** "Billing entry". @param {string} type */
export const recordName = (type) => humanize(type.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase()).replace(/^Emr/, "EMR");
