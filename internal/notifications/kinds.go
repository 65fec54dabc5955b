package notifications

import (
	"maps"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// The channels of the contract.
const (
	Escalations = "escalations"
	Alerts      = "alerts"
	Reminders   = "reminders"
	DailyDigest = "daily_digest"
)

// Channels lists them in the contract's order.
var Channels = []string{Escalations, Alerts, Reminders, DailyDigest}

// The types of notifications. A user can disable those in subtypes one by one.
const (
	thresholdCritical   = "threshold_critical"
	thresholdWarning    = "threshold_warning"
	lateReading         = "late_reading"
	escalationWithdrawn = "escalation_withdrawn"
	missedReading       = "missed_reading"
	deviceNotice        = "device"
	emrCorrection       = "emr_correction"
	escalationOpened    = "escalation_opened"
	escalationAssigned  = "escalation_assigned"
	escalationOverdue   = "escalation_overdue"
	escalationOnCall    = "escalation_on_call"
	escalationIdle      = "escalation_idle"
	quarantine          = "quarantine"
	quarantineCritical  = "quarantine_critical"
	claimDenied         = "claim_denied"
	evidenceChanged     = "evidence_changed"
	billingRun          = "billing_run"
	attestation         = "attestation"
	followUp            = "follow_up"
	pendingReviews      = "pending_reviews"
	billingTasks        = "billing_tasks"
	measure             = "measure"
	measureAgain        = "measure_again"
	textReceived        = "text_received"
	messageForPatient   = "message_for_patient"
	textUnmatched       = "text_unmatched"
	textCritical        = "text_critical"
	questionnaire       = "questionnaire"
	digest              = "daily_digest"
)

// audience returns the record ids of the recipients of an announcement.
type audience func(r recipients, a *collections.Announcement) ([]string, error)

// kindRule holds what a kind determines.
type kindRule struct {
	channel, kind, title string
	audience             audience
}

// kindRules maps each kind to its channel, type, title and audience. Source: docs/decisions/notifications.md, "Recipients".
var kindRules = map[Kind]kindRule{
	AlertRaised:          {Alerts, thresholdWarning, "Reading out of range", recipients.careTeam},
	ReadingSuperseded:    {Alerts, lateReading, "Late reading out of range", recipients.careTeam},
	EscalationWithdrawn:  {Escalations, escalationWithdrawn, "Escalation withdrawn", recipients.responsible},
	DeviceAlertRaised:    {Alerts, deviceNotice, "Device needs attention", recipients.careTeam},
	ReadingMissed:        {Alerts, missedReading, "Reading missed", recipients.careTeam},
	EMRCopyWrong:         {Alerts, emrCorrection, "Urgent task: correct the EMR", recipients.careTeam},
	ServiceTrouble:       {Alerts, SystemHealth, "Service", roles(authz.Admin)},
	EscalationOpened:     {Escalations, escalationOpened, "Escalation", recipients.responsible},
	EscalationAssigned:   {Escalations, escalationAssigned, "Escalation assigned to you", recipients.responsible},
	EscalationOverdue:    {Escalations, escalationOverdue, "Escalation not answered", recipients.responsible},
	EscalationOnCall:     {Escalations, escalationOnCall, "Escalation: you are on call", namedUserOnly},
	EscalationUnanswered: {Escalations, escalationOverdue, "Escalation not answered", recipients.allLevels},
	EscalationIdle:       {Escalations, escalationIdle, "Escalation without a note", recipients.workers},
	EscalationUnnoted:    {Escalations, escalationIdle, "Escalation without a note", recipients.supervisors},
	EventQuarantined:     {Reminders, quarantine, "Device events in quarantine", roles(authz.Admin, authz.ClinicalManager, authz.MA)},
	EvidenceChanged:      {Reminders, evidenceChanged, "Billed evidence changed", roles(authz.Admin, authz.DataMonitor)},
	ClaimDenied:          {Reminders, claimDenied, "Claim denied", roles(authz.Admin, authz.DataMonitor)},
	RefundDue:            {Reminders, billingTasks, "Refund due", roles(authz.Admin, authz.DataMonitor)},
	BillingRunSkipped:    {Reminders, billingRun, "Billing run", roles(authz.Admin, authz.DataMonitor)},
	AttestationNeeded:    {Reminders, attestation, "Time to confirm", roles(authz.Admin, authz.DataMonitor)},
	DeliveryDeadLettered: {Alerts, SystemHealth, "Delivery to the EMR", roles(authz.Admin, authz.DataMonitor)},
	EMROutage:            {Alerts, SystemHealth, "EMR outage", roles(authz.Admin, authz.DataMonitor)},
	WebhookTrouble:       {Alerts, SystemHealth, "Webhook", roles(authz.Admin)},
	MessageForPatient:    {Reminders, messageForPatient, "Message from your care team", recipients.patient},
	TextReceived:         {Reminders, textReceived, "Message from a patient", recipients.careTeam},
	TextUnmatched:        {Reminders, textUnmatched, "Text without a certain patient", roles(authz.Admin, authz.ClinicalManager, authz.Nurse, authz.MA)},
	QuestionnaireFinding: {Alerts, questionnaire, "Answers to a questionnaire", recipients.careTeam},
	FollowUpDue:          {Reminders, followUp, "Follow-up", recipients.followUpFallback},
	ReviewsPending:       {Reminders, pendingReviews, "Reviews", namedUserOnly},
	BillingTasksPending:  {Reminders, billingTasks, "Billing tasks", namedUserOnly},
	MeasureAgain:         {Reminders, measureAgain, "Measure again", recipients.patient},
	DigestReady:          {DailyDigest, digest, "Daily summary", namedUserOnly},
}

// Kinds lists all kinds of announcements.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kindRules)) }

// Types lists all types of notifications.
func Types() []string { return slices.Sorted(maps.Keys(pushTexts)) }

// ruleFor returns the rule of an announcement. An unknown kind is treated as a system notice, so that it is not lost.
func ruleFor(a *collections.Announcement) kindRule {
	m, known := kindRules[Kind(a.Kind)]
	if !known {
		m = kindRules[ServiceTrouble]
	}
	if m.kind == thresholdWarning && a.Severity == "critical" {
		m.kind, m.title = thresholdCritical, "Critical reading"
	}
	if m.kind == quarantine && a.Severity == "critical" { // it may be any patient's, and is pushed in quiet hours like an escalation
		m = kindRule{Escalations, quarantineCritical, "Critical value without a certain patient", roles(
			authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA)}
	}
	if m.kind == textUnmatched && a.Severity == "critical" {
		m = kindRule{Escalations, textCritical, "Emergency text without a certain patient", roles(
			authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA)}
	}
	if m.kind == escalationIdle && a.Severity == "info" { // routine work can wait for the morning
		m.channel = Reminders
	}
	return m
}

// inAppOnly are the types that are never pushed, because they need no action.
var inAppOnly = []string{lateReading, escalationWithdrawn}

// ofMonitoring are the types that end with monitoring: they are not pushed about an archived or deleted patient.
var ofMonitoring = []string{
	thresholdCritical, thresholdWarning, lateReading, escalationWithdrawn, missedReading, deviceNotice, escalationOpened, escalationAssigned,
	escalationOverdue, escalationOnCall, escalationIdle, followUp, measure, measureAgain, questionnaire,
}

// pushTexts are the bodies of pushes by type. They contain no names and no values. Source: docs/decisions/notifications.md, "Push text".
var pushTexts = map[string]string{
	thresholdCritical:   "A patient has an abnormal reading that needs attention.",
	thresholdWarning:    "A patient has a reading outside the set range.",
	lateReading:         "A late reading of a patient was outside the set range.",
	escalationWithdrawn: "An escalation was withdrawn.",
	missedReading:       "A patient missed a scheduled reading.",
	deviceNotice:        "A patient's device needs attention.",
	emrCorrection:       "Urgent task: a record at the EMR needs to be corrected.",
	escalationOpened:    "An escalation was opened for a patient.",
	escalationAssigned:  "An urgent escalation was assigned to you.",
	escalationOverdue:   "An escalation has not been answered in time.",
	escalationOnCall:    "You are on call: an escalation has not been answered in time.",
	escalationIdle:      "An escalation in progress has had no note for hours.",
	quarantine:          "Device events are in quarantine and need a patient.",
	quarantineCritical:  "A measurement beyond critical limits is in quarantine and needs a patient now.",
	claimDenied:         "A claim was denied.",
	evidenceChanged:     "The evidence of a claim has changed.",
	billingRun:          "The billing run skipped entries.",
	attestation:         "Please confirm the time spent on an escalation.",
	followUp:            "A follow-up is due.",
	pendingReviews:      "Patients are waiting for your review.",
	billingTasks:        "Billing tasks are waiting.",
	measure:             "It is time to take your measurement.",
	measureAgain:        "Please rest for a few minutes and take your measurement again.",
	textReceived:        "A patient sent a message.",
	messageForPatient:   "You have a message from your care team.",
	textUnmatched:       "A text message needs a patient.",
	textCritical:        "A text message with words of an emergency needs a patient now.",
	questionnaire:       "A patient's answers need your attention.",
	digest:              "Your daily summary is ready.",
	SystemHealth:        "There is news about the service or your account.",
	EmergencyAccess:     "A patient's record was opened in an emergency.",
}

// genericTexts replace a title that is not allowed, and a body that the sanitizer rejects.
var genericTexts = map[string][2]string{
	Escalations: {"Escalation", "An escalation needs your attention."},
	Alerts:      {"Clinical alert", "A patient needs your attention."},
	Reminders:   {"Reminder", "You have a reminder."},
	DailyDigest: {"Daily summary", "Your daily summary is ready."},
}

// pushText returns the body of a push.
func pushText(channel, kind string) string {
	if text, known := pushTexts[kind]; known {
		return text
	}
	return genericTexts[channel][1]
}
