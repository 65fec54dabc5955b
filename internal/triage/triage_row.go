package triage

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
)

// reviewDue is how long after a review new readings require another.
const reviewDue = 7 * 24 * time.Hour

// ComputedRow is a patient's row of the triage list, computed from a snapshot.
type ComputedRow struct {
	Score                  Score
	Latest                 Latest
	Unacknowledged         int
	UnacknowledgedCritical int
	OldestUnacknowledgedAt time.Time
	ActiveEscalations      int
	NeedsReview            bool
	NeedsThresholds        bool
	Provisional            string // JSON; "" for none
}

// ComputeRow computes the patient's row.
func (p PatientSnapshot) ComputeRow(now time.Time) ComputedRow {
	c := ScoreInput{
		Latest: p.Latest, Thresholds: p.Thresholds, Baseline: p.Baseline, Alerts: countRecent(p.Recent, now),
		ReviewedAt: p.LastReviewedAt, Undecided: p.undecidedAlerts(), AlertedAt: map[string]time.Time{}, BoundsSetAt: p.BoundsSetAt,
	}
	if p.stored.provisional == "" && p.Thresholds.ProvisionalText() != "" {
		c.BoundsSetAt = now // by the proposal of a template
	}
	if c.ReviewedAt.IsZero() {
		c.ReviewedAt = p.EnrolledAt
	}
	s := ComputedRow{Latest: p.Latest, ActiveEscalations: len(p.Escalations), Unacknowledged: len(p.Open)}
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
			if alert.Type == alerts.TypeEarlyWarning {
				c.UrgentWarnings = append(c.UrgentWarnings, alert)
			}
		}
	}
	for _, alert := range p.Recent {
		if alert.Level == alerts.Critical && alert.Undecided == nil && alerts.AboutReading(alert.Type) && alert.CreatedAt.After(c.AlertedAt[alert.Type]) {
			c.AlertedAt[alert.Type] = alert.CreatedAt
		}
	}
	for _, escalation := range p.Escalations {
		c.StatEscalation = c.StatEscalation || escalation.Priority == escalations.Stat
		c.UrgentEscalation = c.UrgentEscalation || escalation.Priority == escalations.Urgent
	}
	s.Score = ComputeScore(c, now)
	if why := p.missingThresholdsText(); why != "" {
		s.NeedsThresholds = true
		s.Score.Factors = append(s.Score.Factors, Factor{Factor: FactorThresholds, Detail: why})
	}
	if why := p.Thresholds.ProvisionalText(); why != "" {
		s.Provisional = p.provisional()
		s.Score.Factors = append(s.Score.Factors, Factor{Factor: FactorProposed, Detail: why})
	}
	s.NeedsReview = s.NeedsThresholds || s.Provisional != "" || s.Unacknowledged > 0 || s.ActiveEscalations > 0 || s.Score.Value >= lowestWarning ||
		p.unreviewedReading(now)
	return s
}

// unreviewedReading reports whether there is a reading since the last review, and the review is more than seven days ago or never happened.
func (p PatientSnapshot) unreviewedReading(now time.Time) bool {
	newest := p.Latest.MeasuredAt()
	if newest.IsZero() {
		return false
	}
	return p.LastReviewedAt.IsZero() || (newest.After(p.LastReviewedAt) && now.Sub(p.LastReviewedAt) > reviewDue)
}

// never sorts after every time: the oldest unacknowledged alert of a patient without one.
const never = "9999-12-31T23:59:59.999999Z"

// AddRow gives a new patient a row on the triage list, in the transaction that stores the patient.
func AddRow(tx core.App, patientID string, now time.Time) error {
	row, err := collections.NewTriageScore(tx, patientID, string(RiskNoData), never, now)
	if err != nil {
		return err
	}
	if err := tx.SaveNoValidate(row); err != nil {
		return fmt.Errorf("add patient to the triage list: %w", err)
	}
	return nil
}

// SetListed sets whether a patient appears on the triage list, and adds a missing row.
func SetListed(tx core.App, patientID string, listed bool, enrolledAt time.Time) error {
	row, err := collections.FindTriageScore(tx, patientID)
	if collections.IsNotFound(err) {
		return AddRow(tx, patientID, enrolledAt)
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

// ReplaceLatest replaces a patient's latest readings after one of them no longer counts.
func ReplaceLatest(tx core.App, patientID string, latest Latest) error {
	raw, err := latest.encode()
	if err != nil {
		return fmt.Errorf("encode latest vitals: %w", err)
	}
	return collections.SetLatestVitals(tx, patientID, string(raw))
}

// SaveRow stores a computed row in the caller's transaction, which announces the change with a reading, or counts the list's version: see
// [collections.ListVersion].
func SaveRow(tx core.App, patientID string, s ComputedRow, now time.Time) error {
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
		oldest = collections.FormatInstant(s.OldestUnacknowledgedAt)
	}
	rank := []any{
		s.Score.Value, string(s.Score.Level), s.Unacknowledged, s.UnacknowledgedCritical, oldest, s.ActiveEscalations, s.NeedsReview,
	}
	rest := []any{
		string(factors), string(latest), collections.FormatInstant(s.Latest.MeasuredAt()), collections.FormatInstant(now), s.NeedsThresholds,
		s.Provisional, s.Provisional, collections.FormatInstant(now), patientID,
	}
	for _, update := range []struct {
		text   string
		values []any
	}{{updateUnranked, slices.Concat(rest, rank)}, {updateRanked, slices.Concat(rank, rest)}} {
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

// Most readings do not change a patient's rank. An update that names a ranking column rewrites every index with it, so the first
// statement names none and matches only if the rank is unchanged.
const (
	unrankedColumns = `risk_factors = ?, latest_vitals = ?, last_reading_at = ?, scored_at = ?, needs_thresholds = ?,
		provisional = ?, provisional_since = CASE WHEN ? = '' THEN '' WHEN provisional_since != '' THEN provisional_since ELSE ? END`
	updateUnranked = `UPDATE OR FAIL triage_scores SET ` + unrankedColumns + ` WHERE patient = ? AND risk_score = ? AND risk_level = ? AND unacknowledged_alerts = ?
		AND unacknowledged_critical = ? AND oldest_unacknowledged_at = ? AND active_escalations = ? AND needs_review = ?`
	updateRanked = `UPDATE OR FAIL triage_scores SET risk_score = ?, risk_level = ?, unacknowledged_alerts = ?, unacknowledged_critical = ?, oldest_unacknowledged_at = ?,
		active_escalations = ?, needs_review = ?, ` + unrankedColumns + ` WHERE patient = ?`
)

// Row is a patient's row of the triage list, as stored. Times are zero for never.
type Row struct {
	PatientID                                    string
	Listed                                       bool // those of archived and deleted patients are not
	RiskScore                                    int
	RiskLevel                                    string
	Factors                                      []Factor
	Latest                                       Latest
	LastReadingAt                                time.Time
	UnacknowledgedAlerts, UnacknowledgedCritical int
	OldestUnacknowledgedAt                       time.Time // means nothing without unacknowledged alerts
	LastReviewedAt                               time.Time
	LastReviewedBy                               string
	ActiveEscalations                            int
	NeedsReview                                  bool
	Provisional                                  []alerts.ProvisionalBound
	ProvisionalSince                             time.Time // means nothing without provisional bounds
}

// readRows reads the rows of a query on triage_scores and sets its columns. It does not use PocketBase records, which would double the
// time.
func readRows(query *dbx.SelectQuery) (page []Row, err error) {
	rows, err := query.Select("patient", "listed", "risk_score", "risk_level", "COALESCE(NULLIF(risk_factors, 'null'), '[]')", "COALESCE(latest_vitals, '')", "last_reading_at",
		"unacknowledged_alerts", "unacknowledged_critical", "oldest_unacknowledged_at", "last_reviewed_at", "last_reviewed_by", "active_escalations", "needs_review", "provisional", "provisional_since").
		From(collections.TriageScores).Rows()
	if err != nil {
		return nil, fmt.Errorf("read triage rows: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below reports failures
	for rows.Next() {
		var r Row
		var factors, latest, reading, oldest, reviewed, provisional, since string
		err := rows.Scan(&r.PatientID, &r.Listed, &r.RiskScore, &r.RiskLevel, &factors, &latest, &reading,
			&r.UnacknowledgedAlerts, &r.UnacknowledgedCritical, &oldest, &reviewed, &r.LastReviewedBy, &r.ActiveEscalations, &r.NeedsReview, &provisional, &since)
		if err != nil {
			return nil, fmt.Errorf("read a triage row: %w", err)
		}
		if err := json.Unmarshal([]byte(factors), &r.Factors); err != nil {
			return nil, fmt.Errorf("read risk factors: %w", err)
		}
		if r.Latest, err = ParseLatest(latest); err != nil {
			return nil, err
		}
		r.LastReadingAt, r.LastReviewedAt = collections.ParseInstant(reading), collections.ParseInstant(reviewed)
		r.OldestUnacknowledgedAt, r.ProvisionalSince = collections.ParseInstant(oldest), collections.ParseInstant(since)
		if r.Provisional, err = alerts.ParseProvisional(provisional); err != nil {
			return nil, err
		}
		page = append(page, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read triage rows: %w", err)
	}
	return page, nil
}
