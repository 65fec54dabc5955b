package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// LastNotified is what people have heard of as critical: the values by which they were told last.
type LastNotified struct{ Values []alerts.Known }

// loadLastNotified reads what people have heard of, where a reading may be worse: only what may be critical costs a query, and only while there is
// an escalation, or was one a moment ago. Source: docs/decisions/alerts.md, "Worse than last notified".
func loadLastNotified(tx core.App, r vitals.Reading, snapshot triage.Picture, now time.Time) (*LastNotified, error) {
	if !alerts.MayBeCritical(r, snapshot.Thresholds) || !snapshot.HeardOfCritical(now) {
		return nil, nil
	}
	values, err := triage.Told(tx, snapshot, now)
	if _, open := snapshot.OpenBySystem(); err != nil || !open && len(values) == 0 {
		return nil, err
	}
	return &LastNotified{values}, nil
}

// isWorse reports whether an alert that escalates is about more than people have heard of. What is over as it comes says nothing of now.
func (s AssessInput) isWorse(alert alerts.Draft, r vitals.Reading) bool {
	return s.LastNotified != nil && escalates(alert) && !alert.Snoozed && !alert.Over() && alerts.Worse(alert.Finding, r, s.Snapshot.Thresholds, s.LastNotified.Values)
}
