package notifications

import (
	"cmp"
	"maps"
	"slices"
)

// The types of notifications.
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

// notificationType is what a type determines. Texts have no names and no values.
// Source: docs/decisions/notifications.md, "Push text".
type notificationType struct {
	title string // of pushes; "" where level, alert or priority make it
	step  string // what happened to an escalation, after its priority in the title
	text  string // of pushes
	// spanish are title and text for patients.
	spanish [2]string
	// endsWithMonitoring: it is not pushed about an archived or deleted patient.
	endsWithMonitoring bool
	// isInAppOnly: it needs no action and is never pushed.
	isInAppOnly bool
	// canBeDisabled: a user can disable it alone; critical alerts cannot be disabled.
	canBeDisabled bool
}

var types = map[string]notificationType{
	thresholdCritical:   {text: "A patient has an abnormal reading that needs attention.", endsWithMonitoring: true},
	thresholdWarning:    {text: "A patient has a reading outside the set range.", endsWithMonitoring: true, canBeDisabled: true},
	lateReading:         {title: "Late reading", text: "A late reading of a patient was outside the set range.", endsWithMonitoring: true, isInAppOnly: true},
	escalationWithdrawn: {step: "withdrawn", text: "An escalation was withdrawn.", endsWithMonitoring: true, isInAppOnly: true},
	missedReading:       {title: "Missed readings", text: "A patient missed a scheduled reading.", endsWithMonitoring: true, canBeDisabled: true},
	deviceNotice:        {text: "A patient's device needs attention.", endsWithMonitoring: true, canBeDisabled: true},
	emrCorrection:       {title: "Urgent task: correct the EMR", text: "Urgent task: a record at the EMR needs to be corrected."},
	escalationOpened:    {text: "An escalation was opened for a patient.", endsWithMonitoring: true},
	escalationAssigned:  {step: "assigned to you", text: "An urgent escalation was assigned to you.", endsWithMonitoring: true},
	escalationOverdue:   {step: "nobody has taken it", text: "An escalation has not been answered in time.", endsWithMonitoring: true},
	escalationOnCall:    {step: "you are on call", text: "You are on call: an escalation has not been answered in time.", endsWithMonitoring: true},
	escalationIdle:      {step: "no note for hours", text: "An escalation in progress has had no note for hours.", endsWithMonitoring: true},
	quarantine:          {title: "Reminder: device events in quarantine", text: "Device events are in quarantine and need a patient."},
	quarantineCritical:  {title: "Critical: measurement without a certain patient", text: "A measurement beyond critical limits is in quarantine and needs a patient now."},
	claimDenied:         {title: "Reminder: claim denied", text: "A claim was denied."},
	evidenceChanged:     {title: "Reminder: billed evidence changed", text: "The evidence of a claim has changed."},
	billingRun:          {title: "Reminder: billing run", text: "The billing run skipped entries."},
	attestation:         {title: "Reminder: time to confirm", text: "Please confirm the time spent on an escalation."},
	followUp:            {title: "Reminder: follow-up due", text: "A follow-up is due.", endsWithMonitoring: true},
	pendingReviews:      {title: "Reminder: reviews are waiting", text: "Patients are waiting for your review."},
	billingTasks:        {title: "Reminder: billing tasks", text: "Billing tasks are waiting."},
	measure: {
		title: "Reminder: time to measure", text: "It is time to take your measurement.", endsWithMonitoring: true,
		spanish: [2]string{"Recordatorio: hora de medir", "Es hora de hacer su medición."},
	},
	measureAgain: {
		title: "Reminder: measure again", text: "Please rest for a few minutes and take your measurement again.", endsWithMonitoring: true,
		spanish: [2]string{"Recordatorio: mida otra vez", "Descanse unos minutos y haga su medición otra vez."},
	},
	textReceived: {title: "Reminder: message from a patient", text: "A patient sent a message."},
	messageForPatient: {
		title: "Reminder: message from your care team", text: "You have a message from your care team.",
		spanish: [2]string{"Recordatorio: mensaje de su equipo médico", "Tiene un mensaje de su equipo médico."},
	},
	textUnmatched:   {title: "Reminder: text without a patient", text: "A text message needs a patient."},
	textCritical:    {title: "Critical: emergency text without a patient", text: "A text message with words of an emergency needs a patient now."},
	questionnaire:   {title: "Notice: answers of a patient", text: "A patient's answers need your attention.", endsWithMonitoring: true},
	digest:          {title: "Daily summary", text: "Your daily summary is ready."},
	SystemHealth:    {title: "System notice", text: "There is news about the service or your account.", canBeDisabled: true},
	EmergencyAccess: {title: "System notice: emergency access", text: "A patient's record was opened in an emergency."},
}

// Types lists all types of notifications.
func Types() []string { return slices.Sorted(maps.Keys(types)) }

// disableable returns the types that a user can disable, all enabled.
func disableable() map[string]bool {
	enabled := map[string]bool{}
	for name, t := range types {
		if t.canBeDisabled {
			enabled[name] = true
		}
	}
	return enabled
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
	return cmp.Or(types[kind].text, genericTexts[channel][1])
}
