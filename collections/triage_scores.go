package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// TriageScore is a patient's row behind the triage list. Pages of them are read by internal/triage itself, which must be fast.
type TriageScore struct{ core.BaseRecordProxy }

// NewTriageScore returns the unsaved row of a patient without data. oldest stands for no unacknowledged alert.
func NewTriageScore(app core.App, patientID, level, oldest string, now time.Time) (*TriageScore, error) {
	record, err := New(app, TriageScores)
	if err != nil {
		return nil, err
	}
	record.Load(map[string]any{
		"patient": patientID, "listed": true, "risk_level": level, "risk_factors": []string{}, "latest_vitals": map[string]any{},
		"oldest_unacknowledged_at": oldest, "enrolled_at": Instant(now), "scored_at": Instant(now),
	})
	return as[TriageScore](record), nil
}

// FindTriageScore finds the row of a patient.
func FindTriageScore(app core.App, patientID string) (*TriageScore, error) {
	return find[TriageScore](app, TriageScores, dbx.HashExp{"patient": patientID})
}

// SetReviewed stores that somebody looked at a patient.
func SetReviewed(tx core.App, patientID, by string, now time.Time) error {
	return exec(tx, "note review", `UPDATE triage_scores SET last_reviewed_at = {:at}, last_reviewed_by = {:by} WHERE patient = {:patient}`,
		dbx.Params{"at": Instant(now), "by": by, "patient": patientID})
}

// SetLatestVitals stores what is known of a patient's latest readings.
func SetLatestVitals(tx core.App, patientID, latest string) error {
	return exec(tx, "replace latest vitals", `UPDATE triage_scores SET latest_vitals = {:latest} WHERE patient = {:patient}`,
		dbx.Params{"latest": latest, "patient": patientID})
}

// Listed reports whether the patient is on the list: archived and deleted ones are not.
func (s *TriageScore) Listed() bool          { return s.GetBool("listed") }
func (s *TriageScore) SetListed(listed bool) { s.Set("listed", listed) }
