package triage

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
)

// Row is a patient's place on the list, as stored. Times are zero for never.
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
}

// readRows reads what a query of triage_scores finds; it chooses no columns itself. A record of PocketBase's for each row would take as long
// as finding them.
func readRows(query *dbx.SelectQuery) (page []Row, err error) {
	rows, err := query.Select("patient", "listed", "risk_score", "risk_level", "COALESCE(NULLIF(risk_factors, 'null'), '[]')", "COALESCE(latest_vitals, '')", "last_reading_at",
		"unacknowledged_alerts", "unacknowledged_critical", "oldest_unacknowledged_at", "last_reviewed_at", "last_reviewed_by", "active_escalations", "needs_review").
		From(collections.TriageScores).Rows()
	if err != nil {
		return nil, fmt.Errorf("read triage rows: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong
	for rows.Next() {
		var r Row
		var factors, latest, reading, oldest, reviewed string
		err := rows.Scan(&r.PatientID, &r.Listed, &r.RiskScore, &r.RiskLevel, &factors, &latest, &reading,
			&r.UnacknowledgedAlerts, &r.UnacknowledgedCritical, &oldest, &reviewed, &r.LastReviewedBy, &r.ActiveEscalations, &r.NeedsReview)
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
		r.OldestUnacknowledgedAt = collections.ParseInstant(oldest)
		page = append(page, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read triage rows: %w", err)
	}
	return page, nil
}
