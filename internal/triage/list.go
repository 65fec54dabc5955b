package triage

import (
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Order is how the triage list is sorted.
type Order string

// The orders of the triage list; each ends with the patient id to keep pages stable.
const (
	BySeverity      Order = "-risk_score"
	ByLeastRisk     Order = "risk_score"
	ByOldestReading Order = "last_reading_at"
	ByNewestReading Order = "-last_reading_at"
)

// afterScore breaks ties: more unacknowledged critical alerts, then the older oldest alert, then the longer unreviewed.
// Source: docs/decisions/triage.md, "Triage ordering".
const afterScore = "unacknowledged_critical DESC, oldest_unacknowledged_at, last_reviewed_at, patient"

var orderings = map[Order]string{
	BySeverity:      "risk_score DESC, " + afterScore,
	ByLeastRisk:     "risk_score, " + afterScore,
	ByOldestReading: "last_reading_at, patient",
	ByNewestReading: "last_reading_at DESC, patient DESC",
}

// Filter narrows the triage list; zero values do not.
type Filter struct {
	RiskLevel string
	// Unacknowledged keeps patients with (true) or without (false) unacknowledged alerts.
	Unacknowledged *bool
	NeedsReview    *bool
	// Escalated keeps patients with an open escalation.
	Escalated bool
	// CareTeamOf limits the list to the care teams of this user (record id).
	CareTeamOf string
	// PatientIDs limits the list to these patients; nil keeps all.
	PatientIDs []string
	Order      Order
}

// List returns a page of the triage list and the number of matching patients.
func List(app core.App, f Filter, offset, limit int) (page []Row, total int, err error) {
	order, found := orderings[f.Order]
	if !found {
		order = orderings[BySeverity]
	}
	listed := true
	conditions := collections.Conditions{}.Is("listed", &listed).Equal("risk_level", f.RiskLevel).Is("needs_review", f.NeedsReview)
	if f.Unacknowledged != nil && *f.Unacknowledged {
		conditions = append(conditions, dbx.NewExp("unacknowledged_alerts > 0"))
	} else if f.Unacknowledged != nil {
		conditions = append(conditions, dbx.NewExp("unacknowledged_alerts = 0"))
	}
	if f.PatientIDs != nil {
		conditions = append(conditions, collections.AnyOf("patient", f.PatientIDs))
	}
	switch {
	case f.Escalated && f.PatientIDs != nil: // few rows: no index needed
		conditions = append(conditions, dbx.NewExp("active_escalations > 0"))
	case f.Escalated:
		conditions = conditions.Escalated()
	}
	if f.CareTeamOf != "" || f.PatientIDs != nil || f.Escalated {
		conditions = conditions.OnCareTeamOf(f.CareTeamOf)
		total, err = conditions.Count(app, collections.TriageScores)
	} else {
		total, err = collections.CountListed(app, f.RiskLevel, f.NeedsReview, f.Unacknowledged)
	}
	if err != nil {
		return nil, 0, err
	}
	page, err = readRows(app.DB().Select().Where(collections.AllOf(conditions)).OrderBy(strings.Split(order, ", ")...).
		Offset(int64(offset)).Limit(int64(limit)))
	return page, total, err
}

// Find returns the rows of the given patients; patients without a row are omitted.
func Find(app core.App, patientIDs ...string) ([]Row, error) {
	return readRows(app.DB().Select().Where(collections.AnyOf("patient", patientIDs)))
}
