package triage

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
)

// reviewDue is the time after a review from which new readings want another.
const reviewDue = 7 * 24 * time.Hour

// Place is a patient's row on the triage list, worked out.
type Place struct {
	Score                  Score
	Latest                 Latest
	Unacknowledged         int
	UnacknowledgedCritical int
	OldestUnacknowledgedAt time.Time
	ActiveEscalations      int
	NeedsReview            bool
	NeedsThresholds        bool
}

// Place works out where the patient ranks.
func (p Picture) Place(now time.Time) Place {
	c := Circumstances{
		Latest: p.Latest, Thresholds: p.Thresholds, Weighings: p.Weighings, Alerts: countRecent(p.Recent, now),
		ReviewedAt: p.LastReviewedAt, Undecided: p.undecided(),
	}
	if c.ReviewedAt.IsZero() {
		c.ReviewedAt = p.EnrolledAt
	}
	s := Place{Latest: p.Latest, ActiveEscalations: len(p.Escalations), Unacknowledged: len(p.Open)}
	for _, alert := range p.Open {
		if s.OldestUnacknowledgedAt.IsZero() || alert.CreatedAt.Before(s.OldestUnacknowledgedAt) {
			s.OldestUnacknowledgedAt = alert.CreatedAt
		}
		if alert.Level == alerts.Critical {
			s.UnacknowledgedCritical++
		}
		switch {
		case !alerts.AboutReading(alert.Type):
		case alert.Level == alerts.Critical:
			c.Unanswered = append(c.Unanswered, alert)
		case alert.Level == alerts.Warning:
			c.UnacknowledgedWarning = true
		}
	}
	for _, escalation := range p.Escalations {
		c.StatEscalation = c.StatEscalation || escalation.Priority == escalations.Stat
		c.UrgentEscalation = c.UrgentEscalation || escalation.Priority == escalations.Urgent
	}
	s.Score = Rate(c, now)
	if why := p.needsThresholds(); why != "" {
		s.NeedsThresholds = true
		s.Score.Factors = append(s.Score.Factors, Factor{Factor: FactorThresholds, Detail: why})
	}
	s.NeedsReview = s.NeedsThresholds || s.Unacknowledged > 0 || s.ActiveEscalations > 0 || s.Score.Value >= lowestWarning ||
		p.unreviewedReading(now)
	return s
}

// unreviewedReading: there is a reading since the last review, and that was more than seven days ago or never.
func (p Picture) unreviewedReading(now time.Time) bool {
	newest := p.Latest.MeasuredAt()
	if newest.IsZero() {
		return false
	}
	return p.LastReviewedAt.IsZero() || (newest.After(p.LastReviewedAt) && now.Sub(p.LastReviewedAt) > reviewDue)
}

// never sorts behind every time: the oldest unacknowledged alert of a patient who has none.
const never = "9999-12-31T23:59:59.999999Z"

// Enrol gives a new patient a row on the triage list, inside the transaction that stores the patient.
func Enrol(tx core.App, patientID string, now time.Time) error {
	row, err := collections.NewTriageScore(tx, patientID, string(RiskNoData), never, now)
	if err != nil {
		return err
	}
	if err := tx.SaveNoValidate(row); err != nil {
		return fmt.Errorf("enrol patient on the triage list: %w", err)
	}
	return nil
}

// SetListed says whether a patient, who is enrolled if need be, is shown on the triage list.
func SetListed(tx core.App, patientID string, listed bool, enrolledAt time.Time) error {
	row, err := collections.FindTriageScore(tx, patientID)
	if collections.Missing(err) {
		return Enrol(tx, patientID, enrolledAt)
	}
	if err != nil || row.Listed() == listed {
		return err
	}
	row.SetListed(listed)
	if err := tx.Save(row); err != nil {
		return fmt.Errorf("store triage row: %w", err)
	}
	return nil
}

// ReplaceLatest replaces what is known of a patient's latest readings, for when one of them no longer counts.
func ReplaceLatest(tx core.App, patientID string, latest Latest) error {
	raw, err := latest.encode()
	if err != nil {
		return fmt.Errorf("encode latest vitals: %w", err)
	}
	return collections.SetLatestVitals(tx, patientID, string(raw))
}

// SavePlace writes the row behind the triage list inside the caller's transaction, in which a change is told, as with a reading, or the states of the list
// are counted: see [collections.ListVersion].
func SavePlace(tx core.App, patientID string, s Place, now time.Time) error {
	latest, err := s.Latest.encode()
	if err != nil {
		return fmt.Errorf("encode latest vitals: %w", err)
	}
	factors, err := json.Marshal(s.Score.Factors)
	if err != nil {
		return fmt.Errorf("encode risk factors: %w", err)
	}
	oldest := never
	if !s.OldestUnacknowledgedAt.IsZero() {
		oldest = collections.Instant(s.OldestUnacknowledgedAt)
	}
	rank := []any{
		s.Score.Value, string(s.Score.Level), s.Unacknowledged, s.UnacknowledgedCritical, oldest, s.ActiveEscalations, s.NeedsReview,
	}
	rest := []any{string(factors), string(latest), collections.Instant(s.Latest.MeasuredAt()), collections.Instant(now), s.NeedsThresholds, patientID}
	for _, update := range []struct {
		text   string
		values []any
	}{{refreshPlace, slices.Concat(rest, rank)}, {movePlace, slices.Concat(rank, rest)}} {
		n, err := collections.Write(tx, update.text, update.values...)
		if err != nil {
			return fmt.Errorf("store triage row: %w", err)
		}
		if n == 1 {
			return nil
		}
	}
	return nil
}

// Most readings leave a patient where they are. Naming a ranking column in an update rewrites every index that has it, so the
// first form names none and takes hold only where nothing moves.
const (
	restOfPlace  = `risk_factors = ?, latest_vitals = ?, last_reading_at = ?, scored_at = ?, needs_thresholds = ?`
	refreshPlace = `UPDATE OR FAIL triage_scores SET ` + restOfPlace + ` WHERE patient = ? AND risk_score = ? AND risk_level = ? AND unacknowledged_alerts = ?
		AND unacknowledged_critical = ? AND oldest_unacknowledged_at = ? AND active_escalations = ? AND needs_review = ?`
	movePlace = `UPDATE OR FAIL triage_scores SET risk_score = ?, risk_level = ?, unacknowledged_alerts = ?, unacknowledged_critical = ?, oldest_unacknowledged_at = ?,
		active_escalations = ?, needs_review = ?, ` + restOfPlace + ` WHERE patient = ?`
)
