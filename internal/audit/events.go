package audit

import (
	"strconv"
	"strings"
)

// Event is the name of an event, as noun.verb. Source: docs/decisions/security.md, "Audit record".
type Event string

// The events.
const (
	Login                Event = "auth.login"
	LoginFailed          Event = "auth.login_failed"
	PasswordAccepted     Event = "auth.password_accepted" // a second factor follows
	Lockout              Event = "auth.lockout"
	Unlock               Event = "auth.unlock"
	Logout               Event = "auth.logout"
	Refresh              Event = "auth.refresh"
	RefreshReuse         Event = "auth.refresh_reuse"
	PasswordChange       Event = "auth.password_change"
	PasswordResetRequest Event = "auth.password_reset_request"
	PasswordReset        Event = "auth.password_reset"
	TwoFactorEnable      Event = "auth.2fa_enable"
	TwoFactorDisable     Event = "auth.2fa_disable"
	BackupCodeUsed       Event = "auth.backup_code_used"
	BackupCodesReplaced  Event = "auth.backup_codes_replaced"
	PasskeyRegister      Event = "auth.passkey_register"
	PasskeyRename        Event = "auth.passkey_rename"
	PasskeyRemove        Event = "auth.passkey_remove"
	PasskeyUsed          Event = "auth.passkey_used"
	IdentityLinked       Event = "auth.identity_linked" // an identity of the sign-in provider was linked to the account
	IdentityUnlinked     Event = "auth.identity_unlinked"
	PasskeyRefused       Event = "auth.passkey_refused" // the signature counter decreased

	UserCreate     Event = "user.create"
	UserUpdate     Event = "user.update"
	UserRoleChange Event = "user.role_change"
	UserDeactivate Event = "user.deactivate"
	UserActivate   Event = "user.activate"

	ClientCreate       Event = "client.create"
	ClientUpdate       Event = "client.update"
	ClientDelete       Event = "client.delete"
	ClientSecretRotate Event = "client.secret_rotate"
	ClientToken        Event = "client.token"         // a machine client obtained a token
	ClientTokenRefused Event = "client.token_refused" // a token request failed

	WebhookCreate       Event = "webhook.create"
	WebhookUpdate       Event = "webhook.update"
	WebhookDelete       Event = "webhook.delete"
	WebhookSecretRotate Event = "webhook.secret_rotate"
	WebhookTest         Event = "webhook.test"
	WebhookRetry        Event = "webhook.retry"
	WebhookSend         Event = "webhook.send" // a delivery with values

	PatientCreate    Event = "patient.create"
	PatientRead      Event = "patient.read"
	PatientUpdate    Event = "patient.update"
	PatientArchive   Event = "patient.archive"
	PatientUnarchive Event = "patient.unarchive"
	PatientHold      Event = "patient.hold"
	PatientHoldEnd   Event = "patient.hold_end"
	PatientDelete    Event = "patient.delete"
	PatientRestore   Event = "patient.restore"
	PatientImport    Event = "patient.import"
	PatientSearch    Event = "patient.search"
	PatientShare     Event = "patient.share" // a link for a colleague

	ObservationCreate         Event = "observation.create"
	ObservationRead           Event = "observation.read"
	ObservationUpdate         Event = "observation.update" // a later event completed the partial reading
	ObservationEnteredInError Event = "observation.entered_in_error"
	ObservationConfirm        Event = "observation.confirm" // a suspect reading

	AlertCreate      Event = "alert.create"
	AlertAcknowledge Event = "alert.acknowledge"
	AlertResolve     Event = "alert.resolve"
	AlertAutoResolve Event = "alert.auto_resolve"
	AlertReopen      Event = "alert.reopen" // a reading that resolved it was retracted, or a new one interrupts the run that did
	AlertNote        Event = "alert.note"
	AlertEscalate    Event = "alert.escalate"
	AlertUndo        Event = "alert.undo" // by the user who just acknowledged or resolved it

	EscalationCreate  Event = "escalation.create"
	EscalationUpdate  Event = "escalation.update"
	ThresholdUpdate   Event = "threshold.update"
	ThresholdSimulate Event = "threshold.simulate"
	ThresholdDecline  Event = "threshold.decline" // a proposed template
	ThresholdPropose  Event = "threshold.propose" // a patient's proposed templates changed, but not the patient
	SnoozeCreate      Event = "snooze.create"
	SnoozeEnd         Event = "snooze.end"
	TriageReview      Event = "triage.review"
	TriageReviewUndo  Event = "triage.review_undo" // by the user who just reviewed the patient
	ConsentGrant      Event = "consent.grant"
	ConsentRevoke     Event = "consent.revoke"
	CaregiverGrant    Event = "caregiver.grant"
	CaregiverEnd      Event = "caregiver.end"
	OrderRecord       Event = "order.record"
	MessageCreate     Event = "message.create" // queued for a patient
	MessageUpdate     Event = "message.update" // its state
	MessageRead       Event = "message.read"
	MessageReceive    Event = "message.receive" // from a phone
	MessageClose      Event = "message.close"   // a person dealt with a text
	CareTeamUpdate    Event = "care_team.update"
	OnCallUpdate      Event = "on_call.update"

	QuestionnaireAssign Event = "questionnaire.assign"
	QuestionnaireEnd    Event = "questionnaire.end"
	QuestionnaireAnswer Event = "questionnaire.answer"

	BillingCreate   Event = "billing.create"
	BillingReview   Event = "billing.review"
	BillingSubmit   Event = "billing.submit"
	BillingPay      Event = "billing.pay"
	BillingDeny     Event = "billing.deny"
	BillingAppeal   Event = "billing.appeal"
	BillingResubmit Event = "billing.resubmit"
	BillingVoid     Event = "billing.void"
	BillingReturn   Event = "billing.return"
	BillingReject   Event = "billing.reject" // a clearinghouse or payer rejected the claim without adjudication
	BillingAdjust   Event = "billing.adjust"
	BillingRefund   Event = "billing.refund"
	BillingReverse  Event = "billing.reverse" // a payer reversed a payment or decision

	BillingRequestVoid Event = "billing.request_void"
	BillingSecondary   Event = "billing.bill_secondary"

	BillingUpdate Event = "billing.update"
	BillingExport Event = "billing.export"
	BillingImport Event = "billing.import"
	BillingClose  Event = "billing.close" // a person resolved what a payment of a payer left over
	BillingRun    Event = "billing.run"
	ReportExport  Event = "report.export"

	TimeEntryCreate Event = "time_entry.create"
	TimeEntryUpdate Event = "time_entry.update"
	TimeEntryDelete Event = "time_entry.delete"
	TimeEntryAttest Event = "time_entry.attest"

	ExportStart  Event = "export.start"
	ExportFinish Event = "export.finish"
	ExportFail   Event = "export.fail"
	ExportRead   Event = "export.read" // a file was downloaded
	ExportDelete Event = "export.delete"

	WarehouseExport Event = "warehouse.export"

	EMRAuth            Event = "emr.auth"
	EMRToken           Event = "emr.token"
	EMRTransmit        Event = "emr.transmit"
	EMRTransform       Event = "emr.transform"
	EMRCorrected       Event = "emr.corrected" // a user reports a manual correction in the EMR
	EMRResolve         Event = "emr.resolve"   // a user states whether the EMR has a reading
	EMRSearch          Event = "emr.search"
	EMRTest            Event = "emr.test"
	EMRRequeue         Event = "emr.requeue" // dead letters
	EMRDiagnosticsRead Event = "emr_words.read"

	EMRContextRead     Event = "emr_context.read"    // a person was shown what the EMR's chart has
	EMRContextRefresh  Event = "emr_context.refresh" // a person had the chart read again
	EMRProposalAccept  Event = "emr_proposal.accept"
	EMRProposalDismiss Event = "emr_proposal.dismiss"

	DeviceCreate   Event = "device.create"
	DeviceAssign   Event = "device.assign"
	DeviceUnassign Event = "device.unassign"
	DeviceReplace  Event = "device.replace"
	DeviceSetUp    Event = "device.set_up"

	WebhookRejected    Event = "webhook.rejected"
	WebhookQuarantined Event = "webhook.quarantined"
	WebhookReleased    Event = "webhook.released"
	WebhookDiscarded   Event = "webhook.discarded"
	WebhookPlaced      Event = "webhook.placed"

	HubOffline Event = "hub.offline"
	HubOnline  Event = "hub.online"

	HealthChange   Event = "service.health_change"
	JobRun         Event = "job.run" // started manually
	EMRSync        Event = "emr.sync"
	RetentionPurge Event = "retention.purge"

	NotificationSent Event = "notification.sent"
	SettingsUpdate   Event = "settings.update"
	SettingsRefused  Event = "settings.refused"
	RulesRestore     Event = "rules.restore"
	RulesRefused     Event = "rules.refused"
	AccessDenied     Event = "access.denied"
	EmergencyAccess  Event = "access.emergency"
	AuditRead        Event = "audit.read"
	AuditVerify      Event = "audit.verify"
)

// Action is the FHIR AuditEvent.action of an event.
type Action string

// The actions.
const (
	Create  Action = "C"
	Read    Action = "R"
	Update  Action = "U"
	Delete  Action = "D"
	Execute Action = "E"
)

// actions maps verbs to actions. Every other verb, including those of authentication, is Execute.
var actions = map[string]Action{
	"create": Create, "import": Create, "grant": Create,
	"read": Read, "export": Read,
	"delete": Delete,
	"update": Update, "role_change": Update, "activate": Update, "deactivate": Update,
	"archive": Update, "unarchive": Update, "restore": Update, "entered_in_error": Update, "confirm": Update,
	"acknowledge": Update, "resolve": Update, "auto_resolve": Update, "reopen": Update, "note": Update, "escalate": Update,
	"review": Update, "revoke": Update, "submit": Update, "pay": Update, "deny": Update, "appeal": Update,
	"resubmit": Update, "end": Update, "void": Update, "return": Update, "assign": Update, "unassign": Update, "replace": Update, "set_up": Update, "released": Update, "secret_rotate": Update,
	"discarded": Update, "placed": Update, "accept": Update, "dismiss": Update,
}

// Action returns the action of the event.
func (e Event) Action() Action {
	_, verb, _ := strings.Cut(string(e), ".")
	if action, known := actions[verb]; known {
		return action
	}
	return Execute
}

// Outcome is the FHIR AuditEvent.outcome of an event. The zero value is success.
type Outcome string

// The outcomes.
const (
	Success        Outcome = "0"
	MinorFailure   Outcome = "4"
	SeriousFailure Outcome = "8"
	MajorFailure   Outcome = "12"
)

// ActorType is the type of an actor.
type ActorType string

// The actor types.
const (
	ByUser      ActorType = "user"
	BySuperuser ActorType = "superuser"
	BySystem    ActorType = "system"
	ByGateway   ActorType = "gateway"
	ByClient    ActorType = "client"
	ByAnonymous ActorType = "anonymous"
)

// Origin is the source of a request; empty for scheduled jobs.
type Origin struct {
	Address   string // client address
	Client    string // user agent
	RequestID string
}

// Actor is the user, machine client or system that caused an event, and its origin.
type Actor struct {
	Type            ActorType
	ID, Email, Role string
	Name            string // name of a machine client; users are identified by email
	Origin          Origin
}

// User returns a signed-in user as actor; id is the public id.
func User(id int64, email, role string, from Origin) Actor {
	return Actor{Type: ByUser, ID: strconv.FormatInt(id, 10), Email: email, Role: role, Origin: from}
}

// Superuser returns an operator in the PocketBase dashboard as actor.
func Superuser(id, email string, from Origin) Actor {
	return Actor{Type: BySuperuser, ID: id, Email: email, Origin: from}
}

// System returns the service as actor, for jobs and automatic rules.
func System() Actor { return Actor{Type: BySystem} }

// Gateway returns the device gateway as actor.
func Gateway(from Origin) Actor { return Actor{Type: ByGateway, Origin: from} }

// Client returns a machine client as actor, with its current name.
func Client(id, name string, from Origin) Actor {
	return Actor{Type: ByClient, ID: id, Name: name, Origin: from}
}

// Anonymous returns the actor of a request without authentication.
func Anonymous(from Origin) Actor { return Actor{Type: ByAnonymous, Origin: from} }
