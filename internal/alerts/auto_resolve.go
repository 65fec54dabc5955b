package alerts

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Judged is a reading with what it means by the bounds in force.
type Judged struct {
	MeasuredAt time.Time
	DeviceID   string
	Origin     vitals.Origin
	Findings   []Finding
}

// AutoResolve says what a reading does to the patient's open alerts. A threshold alert counts readings that speak about its type,
// measured after the one that raised it and at least as reliable, for 24 hours; an alert that no data came is over with the first that
// does, however old it is. sequence are all that were measured after any of these alerts, the reading among them, in order of
// measurement: needed where the reading is not the newest of its kind, nil where it is.
// Source: docs/decisions/alerts.md, "Auto-resolve" and "Reading origins".
func AutoResolve(open []Open, r Judged, sequence []Judged, now time.Time, needed NormalReadingsNeeded) []Progress {
	var progress []Progress
	for _, alert := range open {
		if alert.awaits(r) {
			progress = append(progress, Progress{Alert: alert, NormalReadings: alert.NormalReadings, Resolved: true})
			continue
		}
		finding, spoke := FindingOf(r.Findings, alert.Type)
		if !spoke || !alert.MeasuredAt.Before(r.MeasuredAt) || !alert.Settleable(now) {
			continue
		}
		count, settled := alert.NormalReadings, false
		switch {
		case sequence != nil:
			count, settled = alert.SettledBy(sequence, needed)
		case finding.Breached():
			count = 0
		case r.Origin.Settles(alert.Origin):
			count++
			settled = count >= needed.of(alert.Level)
		}
		if settled || count != alert.NormalReadings {
			progress = append(progress, Progress{Alert: alert, NormalReadings: count, Resolved: settled})
		}
	}
	return progress
}

// Settleable reports whether later readings may still resolve the alert; an older one waits for a person.
func (o Open) Settleable(now time.Time) bool { return now.Sub(o.CreatedAt) <= autoResolveWithin }

// SettledBy goes through what was measured, in order, and says how many normal readings in a row came after the alert, or that at some
// point there were enough. Whatever breaches ends a run; only what is at least as reliable as the alert's own reading is counted.
func (o Open) SettledBy(sequence []Judged, needed NormalReadingsNeeded) (normal int, settled bool) {
	for _, r := range sequence {
		finding, spoke := FindingOf(r.Findings, o.Type)
		switch {
		case !spoke || !o.MeasuredAt.Before(r.MeasuredAt):
		case finding.Breached():
			normal = 0
		case r.Origin.Settles(o.Origin):
			if normal++; normal >= needed.of(o.Level) {
				return normal, true
			}
		}
	}
	return normal, false
}

func (n NormalReadingsNeeded) of(level Level) int {
	if level == Critical {
		return n.Critical
	}
	return n.Warning
}

// awaits reports whether the alert only says that data such as this did not come. What somebody typed is no sign of life of a device.
func (o Open) awaits(r Judged) bool {
	return o.Type == TypeMissedReading || (o.Type == TypeNoReading24h && o.DeviceID == r.DeviceID && r.Origin != vitals.OriginPatient)
}

// FindingOf is what a reading means for an alert type, if it says anything about it.
func FindingOf(findings []Finding, alertType string) (Finding, bool) {
	for _, finding := range findings {
		if finding.Type == alertType {
			return finding, true
		}
	}
	return Finding{}, false
}

// Reopen has an alert that readings had resolved wait again, in the caller's transaction, after so many normal readings.
func Reopen(tx core.App, alert *collections.Alert, normal int, now time.Time) error {
	if err := alert.Reopen(tx, normal, now); err != nil {
		return err
	}
	return note(tx, audit.AlertReopen, alert.Id, alert.PatientID(), nil, audit.System(), now)
}

// NoteWithdrawn appends the audit entry of an alert that was over when it turned out to be about nothing.
func NoteWithdrawn(tx core.App, alert *collections.Alert, why phi.Text, by audit.Actor, now time.Time) error {
	said := audit.Changes{"notes": {New: why}, "resolution_reason": {Old: alert.ResolutionReason(), New: ReasonWithdrawn}}
	return note(tx, audit.AlertNote, alert.Id, alert.PatientID(), said, by, now)
}
