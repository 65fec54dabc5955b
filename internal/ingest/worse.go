package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Told is what people have heard of as critical: the values by which they were told last.
type Told struct{ Values []alerts.Known }

// lookForTold reads what people have heard of, where a reading may be worse: only what may be critical costs a query, and only while there is
// an escalation, or was one a moment ago. Source: docs/decisions/alerts.md, "Worse than last notified".
func lookForTold(tx core.App, r vitals.Reading, picture triage.Picture, now time.Time) (*Told, error) {
	if !alerts.MayBeCritical(r, picture.Thresholds) || !picture.HeardOfCritical(now) {
		return nil, nil
	}
	values, err := triage.Told(tx, picture, now)
	if _, open := picture.OpenBySystem(); err != nil || !open && len(values) == 0 {
		return nil, err
	}
	return &Told{values}, nil
}

// worse reports whether an alert that escalates is about more than people have heard of. What is over as it comes says nothing of now.
func (s Situation) worse(alert alerts.Draft, r vitals.Reading) bool {
	return s.Told != nil && escalates(alert) && !alert.Snoozed && !alert.Over() && alerts.Worse(alert.Finding, r, s.Picture.Thresholds, s.Told.Values)
}
