package dashboard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
)

// FeedType is the subject of an entry.
type FeedType string

// The feed types, an open list. Source: docs/decisions/dashboard.md, "Feed types and severities".
const (
	FeedPatient         FeedType = "patient"
	FeedEMRSync         FeedType = "emr_sync"
	FeedVitalAlert      FeedType = "vital_alert"
	FeedAcknowledged    FeedType = "alert_acknowledged"
	FeedEscalation      FeedType = "escalation"
	FeedThresholdChange FeedType = "threshold_change"
	FeedBilling         FeedType = "billing"
	FeedSystem          FeedType = "system"
	FeedUser            FeedType = "user"
)

// FeedTypes lists the feed types.
var FeedTypes = []string{
	string(FeedPatient), string(FeedEMRSync), string(FeedVitalAlert), string(FeedAcknowledged), string(FeedEscalation),
	string(FeedThresholdChange), string(FeedBilling), string(FeedSystem), string(FeedUser),
}

// The severities of the feed.
const (
	severityCritical = "critical"
	severityWarning  = "warning"
	severityInfo     = "info"
	severitySuccess  = "success"
)

// FeedSeverities lists the severities.
var FeedSeverities = []string{severityCritical, severityWarning, severityInfo, severitySuccess}

// feedKind defines how one audited event becomes an entry of the feed.
type feedKind struct {
	event audit.Event
	feed  FeedType
	// severity is fixed, or "" if it depends on the event: see graded.
	severity string
	// text is the message; "{patient}" and other placeholders are filled in.
	text string
	// alerts limits an alert event to these types; nil for all.
	alerts []string
	// compliance events are also visible to the staff group.
	compliance bool
}

var (
	missingAlerts = []string{alerts.TypeMissedReading, alerts.TypeNoReading24h}
	deviceAlerts  = []string{alerts.TypeDeviceBattery, alerts.TypeStaleReading, alerts.TypeDeviceInfo, alerts.TypeDeviceClock}
	readingAlerts = append(slices.Clone(alerts.ReadingTypes), alerts.TypeEarlyWarning, alerts.TypeImplausibleReading)
)

// kinds lists all kinds of entries.
var kinds = []feedKind{
	{event: audit.PatientCreate, feed: FeedPatient, severity: severitySuccess, text: "{patient} was enrolled."},
	{event: audit.PatientArchive, feed: FeedPatient, severity: severityInfo, text: "{patient} was archived."},
	{event: audit.PatientUnarchive, feed: FeedPatient, severity: severityInfo, text: "{patient} was unarchived."},
	{event: audit.PatientImport, feed: FeedEMRSync, severity: severitySuccess, text: "{patient} was imported from the EMR."},
	{event: audit.EMRSync, feed: FeedEMRSync, severity: severitySuccess, text: "Synchronisation with the EMR completed."},
	{event: audit.AlertCreate, feed: FeedVitalAlert, text: "{level} {alert} alert for {patient}.", alerts: readingAlerts},
	{event: audit.AlertCreate, feed: FeedVitalAlert, text: "{alert} of {patient}.", alerts: missingAlerts, compliance: true},
	{event: audit.AlertCreate, feed: FeedSystem, text: "{alert}: {patient}.", alerts: deviceAlerts},
	{event: audit.AlertAcknowledge, feed: FeedAcknowledged, severity: severitySuccess, text: "An alert of {patient} was acknowledged."},
	{event: audit.EscalationCreate, feed: FeedEscalation, text: "{level} escalation for {patient}."},
	{event: audit.ThresholdUpdate, feed: FeedThresholdChange, severity: severityInfo, text: "Thresholds of {patient} were changed."},
	{event: audit.BillingCreate, feed: FeedBilling, severity: severityInfo, text: "Claim generated{code}."},
	{event: audit.BillingSubmit, feed: FeedBilling, severity: severityInfo, text: "Claim submitted{code}."},
	{event: audit.BillingResubmit, feed: FeedBilling, severity: severityInfo, text: "Claim submitted again{code}."},
	{event: audit.BillingPay, feed: FeedBilling, severity: severitySuccess, text: "Claim paid{code}."},
	{event: audit.BillingDeny, feed: FeedBilling, severity: severityWarning, text: "Claim denied{code}."},
	{event: audit.BillingRun, feed: FeedBilling, severity: severitySuccess, text: "Billing run completed."},
	{event: audit.HealthChange, feed: FeedSystem, text: "The service is {state}."},
	{event: audit.HubOffline, feed: FeedSystem, severity: severityWarning, text: "Hub {object} is offline."},
	{event: audit.HubOnline, feed: FeedSystem, severity: severitySuccess, text: "Hub {object} is back."},
	{event: audit.DeviceCreate, feed: FeedSystem, severity: severityInfo, text: "Device {object} was registered."},
	{event: audit.DeviceAssign, feed: FeedSystem, severity: severityInfo, text: "Device {object} was assigned to {patient}."},
	{event: audit.DeviceUnassign, feed: FeedSystem, severity: severityInfo, text: "Device {object} was unassigned from {patient}."},
	{event: audit.DeviceReplace, feed: FeedSystem, severity: severityInfo, text: "Device {object} of {patient} was replaced."},
	{event: audit.Login, feed: FeedUser, severity: severityInfo, text: "{user} signed in."},
	{event: audit.UserRoleChange, feed: FeedUser, severity: severityWarning, text: "The role of user {object} was changed."},
	{event: audit.PasswordReset, feed: FeedUser, severity: severityInfo, text: "{user} set a new password."},
}

// graded maps the words that decide a severity: level of an alert, priority of an escalation, health.
var graded = map[string]string{
	string(alerts.Critical): severityCritical, string(alerts.Warning): severityWarning, string(alerts.NoData): severityWarning, string(alerts.Normal): severityInfo,
	"stat": severityCritical, "urgent": severityWarning, "routine": severityInfo,
	string(Down): severityCritical, string(Degraded): severityWarning, string(Healthy): severitySuccess,
}

// gradedWords returns the words of a severity.
func gradedWords(severity string) (list []string) {
	for word, grade := range graded {
		if grade == severity {
			list = append(list, word)
		}
	}
	slices.Sort(list)
	return list
}

// visibleTo returns the kinds that a role sees. Source: docs/decisions/dashboard.md, "Role-dependent sections".
func visibleTo(role authz.Role, only FeedType) (visible []feedKind) {
	group := GroupOf(role)
	for _, k := range kinds {
		seen := false
		switch group {
		case Administrators:
			seen = true
		case Clinicians:
			seen = k.feed != FeedBilling && k.feed != FeedUser
		case Staff:
			seen = k.compliance || slices.Contains([]FeedType{FeedPatient, FeedEMRSync, FeedSystem}, k.feed)
		case Billing:
			seen = slices.Contains([]FeedType{FeedBilling, FeedEMRSync, FeedSystem}, k.feed)
		}
		if seen && (only == "" || only == k.feed) {
			visible = append(visible, k)
		}
	}
	return visible
}

// message fills in the text.
func (k feedKind) message(e FeedEntry) string {
	code := ""
	if e.cptCode != "" {
		code = ": " + e.cptCode
	}
	text := strings.NewReplacer("{patient}", e.patient, "{alert}", strings.ReplaceAll(e.alertType, "_", " "), "{level}", cmp.Or(e.word, "new"),
		"{code}", code, "{state}", e.ObjectID, "{object}", e.ObjectID, "{user}", cmp.Or(e.User, "A user")).Replace(k.text)
	if strings.HasPrefix(k.text, "{level}") || strings.HasPrefix(k.text, "{alert}") { // names and addresses keep their case
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text
}
