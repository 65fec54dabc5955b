package alerts

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// EvaluatedReading is a reading with its findings under the thresholds in force.
type EvaluatedReading struct {
	MeasuredAt time.Time
	DeviceID   string
	Origin     vitals.Origin
	Findings   []Finding
	// OtherPersonTimes are the times of measurement of readings that look like another person's: it resolves none of their alerts.
	OtherPersonTimes []time.Time
	// Measured are the alert types of which it has a value, also without a finding: a first weight is compared with none.
	Measured []string
}

// canResolve reports whether the reading counts for an alert: it is as reliable, surely measured after it, and not another person's.
func (e EvaluatedReading) canResolve(o OpenAlert) bool {
	if o.UnprovenDevice != nil && e.DeviceID != *o.UnprovenDevice && !e.MeasuredAt.After(o.CreatedAt) {
		return false
	}
	return e.Origin.CanResolve(o.Origin) && !slices.ContainsFunc(e.OtherPersonTimes, o.MeasuredAt.Equal)
}

// isSupersededBy reports whether a newer reading ends a late alert, as it would if it had arrived first. With an unproven clock the alert may be
// about the present, and only normal readings end it. Source: docs/decisions/alerts.md, "Late readings".
func (o OpenAlert) isSupersededBy(r EvaluatedReading) bool {
	return o.Late && o.UnprovenDevice == nil && slices.Contains(r.Measured, o.Type) && r.canResolve(o)
}

// AutoResolve returns the effect of a reading on the patient's open alerts. Within its window a threshold alert counts readings of its type
// that were measured after it and are at least as reliable as the alert's own; any of these supersedes a late one. A missing-data alert is
// resolved by the first data, at any age.
// sequence holds all readings measured after any of these alerts, r among them, in order of measurement. It is required if r is not the
// newest of its kind, and nil otherwise. Source: docs/decisions/alerts.md, "Auto-resolve" and "Reading origins".
func AutoResolve(open []OpenAlert, r EvaluatedReading, sequence []EvaluatedReading, now time.Time, needed NormalReadingsRequired) []Progress {
	var progress []Progress
	for _, alert := range open {
		if alert.resolvesOnAnyReading(r) {
			progress = append(progress, Progress{Alert: alert, NormalReadings: alert.NormalReadings, Resolved: true})
			continue
		}
		if !alert.MeasuredAt.Before(r.MeasuredAt) || !alert.CanAutoResolve(now) {
			continue
		}
		if alert.isSupersededBy(r) {
			progress = append(progress, Progress{Alert: alert, NormalReadings: alert.NormalReadings, Resolved: true, Superseded: true})
			continue
		}
		finding, spoke := FindingByType(r.Findings, alert.Type)
		if !spoke {
			continue
		}
		count, resolved := alert.NormalReadings, false
		switch {
		case sequence != nil:
			count, resolved = alert.ResolvedBy(sequence, needed)
		case finding.Breached():
			count = 0
		case r.canResolve(alert):
			count++
			resolved = count >= needed.forLevel(alert.Level)
		}
		if resolved || count != alert.NormalReadings {
			progress = append(progress, Progress{Alert: alert, NormalReadings: count, Resolved: resolved})
		}
	}
	return progress
}

// CanAutoResolve reports whether later readings may still resolve the alert. Only a clinician resolves one after its window, one with a
// doubtful time, and one about a change over weeks.
func (o OpenAlert) CanAutoResolve(now time.Time) bool {
	return !o.TimeInDoubt && !IsSlowChange(o.Parameter) && now.Sub(o.CreatedAt) <= max(minResolveWindow, o.ResolvesWithin)
}

const (
	minResolveWindow = 24 * time.Hour
	week             = 7 * 24 * time.Hour
)

// ResolveWindow returns how long an alert of a type can be resolved by later readings: 1.5 times the mean interval between the readings that
// the schedule expects of any kind that measures it, but at least 24 hours. Without a schedule one reading a day is expected. Source:
// docs/decisions/alerts.md, "Auto-resolve".
func ResolveWindow(schedule collections.Schedule, alertType string) time.Duration {
	perWeek := 0
	if schedule == nil {
		perWeek = 7
	}
	for _, definition := range vitals.Definitions {
		expected, scheduled := schedule[string(definition.Kind)]
		if scheduled && slices.ContainsFunc(definition.Groups, func(group []*vitals.Parameter) bool { return group[0].Group == alertType }) {
			perWeek = max(perWeek, expected.PerWeek())
		}
	}
	if perWeek == 0 {
		return minResolveWindow
	}
	return max(minResolveWindow, week*3/2/time.Duration(perWeek))
}

// ResolvedBy counts the consecutive normal readings in sequence after the alert, and reports whether the required number was ever reached.
// A breach resets the count. Only readings at least as reliable as the alert's own count.
func (o OpenAlert) ResolvedBy(sequence []EvaluatedReading, needed NormalReadingsRequired) (normal int, resolved bool) {
	for _, r := range sequence {
		finding, spoke := FindingByType(r.Findings, o.Type)
		switch {
		case !spoke || !o.MeasuredAt.Before(r.MeasuredAt):
		case finding.Breached():
			normal = 0
		case r.canResolve(o):
			if normal++; normal >= needed.forLevel(o.Level) {
				return normal, true
			}
		}
	}
	return normal, false
}

func (n NormalReadingsRequired) forLevel(level Level) int {
	if level == Critical {
		return n.Critical
	}
	return n.Warning
}

// resolvesOnAnyReading reports whether the alert is about missing data that r supplies. A typed reading does not prove that a device works.
func (o OpenAlert) resolvesOnAnyReading(r EvaluatedReading) bool {
	return o.Type == TypeMissedReading || (o.Type == TypeNoReading24h && o.DeviceID == r.DeviceID && r.Origin != vitals.OriginPatient)
}

// FindingByType returns the finding of an alert type, if there is one.
func FindingByType(findings []Finding, alertType string) (Finding, bool) {
	for _, finding := range findings {
		if finding.Type == alertType {
			return finding, true
		}
	}
	return Finding{}, false
}

// Reopen reopens an alert that readings had resolved, with a count of normal readings, in the caller's transaction.
func Reopen(tx core.App, alert *collections.Alert, normal int, now time.Time) error {
	if err := alert.Reopen(tx, normal, now); err != nil {
		return err
	}
	return auditAlert(tx, audit.AlertReopen, alert.Id, alert.PatientID(), nil, audit.System(), now)
}

// AuditRetraction appends the audit entry of a closed alert that was retracted later.
func AuditRetraction(tx core.App, alert *collections.Alert, why phi.Text, by audit.Actor, now time.Time) error {
	changes := audit.Changes{"notes": {New: why}, "resolution_reason": {Old: alert.ResolutionReason(), New: ReasonRetracted}}
	return auditAlert(tx, audit.AlertNote, alert.Id, alert.PatientID(), changes, by, now)
}
