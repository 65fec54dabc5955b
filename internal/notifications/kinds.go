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
	EscalationUnnoted:    {Escalations, escalationIdle, "Escalation without a note", recipients.workersAndManagers},
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
