package triage

import (
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Order is how the triage list is sorted.
type Order string

// The orders of the triage list; each ends with the patient id, so that pages are stable.
const (
	BySeverity      Order = "-risk_score"
	ByLeastRisk     Order = "risk_score"
	ByLastReading   Order = "last_reading_at"
	ByLatestReading Order = "-last_reading_at"
)

// afterScore breaks ties: more unacknowledged critical alerts, then the older oldest alert, then the longer unreviewed.
// Source: docs/decisions/triage.md, "Triage ordering".
const afterScore = "unacknowledged_critical DESC, oldest_unacknowledged_at, last_reviewed_at, patient"

var orderings = map[Order]string{
	BySeverity:      "risk_score DESC, " + afterScore,
	ByLeastRisk:     "risk_score, " + afterScore,
	ByLastReading:   "last_reading_at, patient",
	ByLatestReading: "last_reading_at DESC, patient DESC",
}

// Filter narrows the triage list; zero values do not.
type Filter struct {
	RiskLevel string
	// Unacknowledged keeps those with (true) or without (false) unacknowledged alerts.
	Unacknowledged *bool
	NeedsReview    *bool
	// Escalated keeps those with an escalation that is open.
	Escalated bool
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
	// Among keeps these patients; nil keeps all.
	Among []string
	Order Order
}

// List returns a page of the triage list and how many patients match in all.
func List(app core.App, f Filter, offset, limit int) (page []Row, total int, err error) {
	order, known := orderings[f.Order]
	if !known {
		order = orderings[BySeverity]
	}
	listed := true
	conditions := collections.Conditions{}.Is("listed", &listed).Equal("risk_level", f.RiskLevel).Is("needs_review", f.NeedsReview)
	if f.Unacknowledged != nil && *f.Unacknowledged {
		conditions = append(conditions, dbx.NewExp("unacknowledged_alerts > 0"))
	} else if f.Unacknowledged != nil {
		conditions = append(conditions, dbx.NewExp("unacknowledged_alerts = 0"))
	}
	if f.Among != nil {
		conditions = append(conditions, collections.AnyOf("patient", f.Among))
	}
	switch {
	case f.Escalated && f.Among != nil: // they are at hand
		conditions = append(conditions, dbx.NewExp("active_escalations > 0"))
	case f.Escalated:
		conditions = conditions.Escalated()
	}
	if f.CareTeamOf != "" || f.Among != nil || f.Escalated {
		conditions = conditions.OnCareTeamOf(f.CareTeamOf)
		total, err = conditions.Count(app, collections.TriageScores)
	} else {
		total, err = collections.CountListed(app, f.RiskLevel, f.NeedsReview, f.Unacknowledged)
	}
	if err != nil {
		return nil, 0, err
	}
	page, err = readRows(app.DB().Select().Where(collections.Every(conditions)).OrderBy(strings.Split(order, ", ")...).
		Offset(int64(offset)).Limit(int64(limit)))
	return page, total, err
}

// Find returns the rows of the given patients; those who have none are left out.
func Find(app core.App, patientIDs ...string) ([]Row, error) {
	return readRows(app.DB().Select().Where(collections.AnyOf("patient", patientIDs)))
}
