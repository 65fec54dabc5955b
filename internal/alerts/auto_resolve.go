package alerts

import (
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// autoResolveWithin bounds the age of a threshold alert that later readings may resolve.
// Source: docs/decisions/alerts.md, "Auto-resolve".
const autoResolveWithin = 24 * time.Hour

// Open is an unacknowledged alert as far as later readings are concerned.
type Open struct {
	ID             string
	Type           string
	Level          Level
	DeviceID       string // "" when it is about no device
	MeasuredAt     time.Time
	CreatedAt      time.Time
	NormalReadings int
}

// NormalReadingsNeeded says how many consecutive normal readings resolve an alert.
type NormalReadingsNeeded struct{ Warning, Critical int }

// Progress is what a reading does to an open alert: it counts as normal, breaks the run, or resolves it.
type Progress struct {
	Alert          Open
	NormalReadings int
	Resolved       bool
}

// AutoResolve says what a reading with these findings does to the patient's open alerts. A threshold alert counts readings
// that speak about its type, measured after the one that raised it, for 24 hours; an alert that no data came is over
// with the first that does, however old it is. Source: docs/decisions/alerts.md, "Auto-resolve".
func AutoResolve(open []Open, r vitals.Reading, findings []Finding, now time.Time, needed NormalReadingsNeeded) []Progress {
	var progress []Progress
	for _, alert := range open {
		if alert.awaits(r) {
			progress = append(progress, Progress{Alert: alert, NormalReadings: alert.NormalReadings, Resolved: true})
			continue
		}
		finding, spoke := findingOf(findings, alert.Type)
		if !spoke || !alert.MeasuredAt.Before(r.MeasuredAt) || now.Sub(alert.CreatedAt) > autoResolveWithin {
			continue
		}
		if finding.Breached() {
			if alert.NormalReadings > 0 {
				progress = append(progress, Progress{Alert: alert})
			}
			continue
		}
		enough := needed.Warning
		if alert.Level == Critical {
			enough = needed.Critical
		}
		count := alert.NormalReadings + 1
		progress = append(progress, Progress{Alert: alert, NormalReadings: count, Resolved: count >= enough})
	}
	return progress
}

// awaits reports whether the alert only says that data such as this did not come.
func (o Open) awaits(r vitals.Reading) bool {
	return o.Type == TypeMissedReading || (o.Type == TypeNoReading24h && o.DeviceID == r.DeviceID)
}

func findingOf(findings []Finding, alertType string) (Finding, bool) {
	for _, finding := range findings {
		if finding.Type == alertType {
			return finding, true
		}
	}
	return Finding{}, false
}
