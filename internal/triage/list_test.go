package triage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func insert(t testing.TB, app core.App, collection string, row dbx.Params) {
	t.Helper()
	if _, err := app.DB().Insert(collection, row).Execute(); err != nil {
		t.Fatal(err)
	}
}

// row is a listed patient on the triage list.
func row(patient string, columns dbx.Params) dbx.Params {
	row := dbx.Params{
		"patient": patient, "listed": true, "risk_level": "normal", "risk_factors": "[]", "latest_vitals": "{}",
		"oldest_unacknowledged_at": "9999-12-31T23:59:59.999999Z",
	}
	for column, value := range columns {
		row[column] = value
	}
	return row
}

func TestList(t *testing.T) {
	app := vigiltest.NewApp(t)
	at := func(hour int) string { return fmt.Sprintf("2026-01-15T%02d:00:00.000000Z", hour) }
	// In the order of severity: each has one thing less than the one before.
	rows := []dbx.Params{
		row("score", dbx.Params{"risk_score": 90, "risk_level": "critical"}),
		row("critical alerts", dbx.Params{
			"risk_score": 76, "risk_level": "critical", "unacknowledged_alerts": 2, "unacknowledged_critical": 2,
			"oldest_unacknowledged_at": at(9), "needs_review": true,
		}),
		row("older alert", dbx.Params{
			"risk_score": 76, "risk_level": "critical", "unacknowledged_alerts": 5, "unacknowledged_critical": 1,
			"oldest_unacknowledged_at": at(7), "needs_review": true,
		}),
		row("younger alert", dbx.Params{
			"risk_score": 76, "risk_level": "critical", "unacknowledged_alerts": 1, "unacknowledged_critical": 1,
			"oldest_unacknowledged_at": at(8), "needs_review": true,
		}),
		row("never reviewed", dbx.Params{"risk_score": 76, "risk_level": "critical", "last_reading_at": at(5)}),
		row("reviewed long ago", dbx.Params{"risk_score": 76, "risk_level": "critical", "last_reviewed_at": at(1), "last_reading_at": at(6)}),
		row("reviewed lately", dbx.Params{"risk_score": 76, "risk_level": "critical", "last_reviewed_at": at(2), "last_reading_at": at(7)}),
		row("tie a", dbx.Params{"risk_score": 10}),
		row("tie b", dbx.Params{"risk_score": 10}),
		row("no data", dbx.Params{"risk_level": "no_data"}),
	}
	for i := range rows { // stored the other way round
		insert(t, app, collections.TriageScores, rows[len(rows)-1-i])
	}
	insert(t, app, collections.TriageScores, row("archived", dbx.Params{"risk_score": 99, "listed": false}))
	insert(t, app, collections.CareTeamMembers, dbx.Params{"patient": "tie b", "user": "u1"})

	tests := []struct {
		name   string
		filter triage.Filter
		want   string
	}{
		{"by severity", triage.Filter{}, "score, critical alerts, older alert, younger alert, never reviewed, reviewed long ago, reviewed lately, tie a, tie b, no data"},
		{"unknown orders are by severity", triage.Filter{Order: "patient; DROP TABLE", Unacknowledged: new(true)}, "critical alerts, older alert, younger alert"},
		{"least risk first, ties as ever", triage.Filter{Order: triage.ByLeastRisk, NeedsReview: new(false)}, "no data, tie a, tie b, never reviewed, reviewed long ago, reviewed lately, score"},
		{"latest reading first", triage.Filter{Order: triage.ByNewestReading, RiskLevel: "critical", Unacknowledged: new(false)}, "reviewed lately, reviewed long ago, never reviewed, score"},
		{"last reading first", triage.Filter{Order: triage.ByOldestReading, RiskLevel: "critical", Unacknowledged: new(false)}, "score, never reviewed, reviewed long ago, reviewed lately"},
		{"level", triage.Filter{RiskLevel: "no_data"}, "no data"},
		{"needs review", triage.Filter{NeedsReview: new(true)}, "critical alerts, older alert, younger alert"},
		{"care team", triage.Filter{CareTeamOf: "u1"}, "tie b"},
		{"another user's care team", triage.Filter{CareTeamOf: "u2"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			page, total, err := triage.List(app, test.filter, 0, 20)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, strings.Join(patientsOf(page), ", ")); diff != "" || total != len(page) {
				t.Errorf("%d in all; %s", total, diff)
			}
		})
	}
	page, total, err := triage.List(app, triage.Filter{}, 7, 2)
	if diff := cmp.Diff([]string{"tie a", "tie b"}, patientsOf(page)); diff != "" || total != 10 || err != nil {
		t.Error(diff, total, err)
	}
}

func patientsOf(page []triage.Row) (patients []string) {
	for _, row := range page {
		patients = append(patients, row.PatientID)
	}
	return patients
}

// Every list walks an index in its order; none sorts the whole list.
func TestListUsesItsIndexes(t *testing.T) {
	app := vigiltest.NewApp(t)
	const severity = " ORDER BY risk_score DESC, unacknowledged_critical DESC, oldest_unacknowledged_at, last_reviewed_at, patient"
	for query, index := range map[string]string{
		"listed = TRUE" + severity:                                            "idx_triage_scores_severity",
		"listed = TRUE AND needs_review = TRUE" + severity:                    "idx_triage_scores_review",
		"listed = TRUE AND unacknowledged_alerts > 0" + severity:              "idx_triage_scores_unacknowledged",
		"listed = TRUE AND unacknowledged_alerts = 0" + severity:              "idx_triage_scores_severity",
		"listed = TRUE AND risk_level = 'critical'" + severity:                "idx_triage_scores_level",
		"patient > 'someone' AND +listed = TRUE ORDER BY patient":             "idx_triage_scores_patient",
		"listed = TRUE ORDER BY last_reading_at, patient":                     "idx_triage_scores_last_reading",
		"listed = TRUE ORDER BY last_reading_at DESC, patient DESC":           "idx_triage_scores_last_reading",
		"listed = TRUE AND last_reviewed_at >= '2026-01-15T05:00:00.000000Z'": "idx_triage_scores_reviewed",
	} {
		plan := explain(t, app, "SELECT * FROM triage_scores WHERE "+query+" LIMIT 20")
		if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s:\n%s", query, plan)
		}
	}
}

// The groups match the rows after any change.
func TestTotalsMatchRows(t *testing.T) {
	app := vigiltest.NewApp(t)
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(rt, "writes") {
			patient := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "patient")
			columns := dbx.Params{
				"listed": rapid.Bool().Draw(rt, "listed"), "risk_score": rapid.IntRange(0, 100).Draw(rt, "score"), "needs_review": rapid.Bool().Draw(rt, "review"),
				"risk_level":            rapid.SampledFrom([]string{"critical", "warning", "normal", "no_data"}).Draw(rt, "level"),
				"unacknowledged_alerts": rapid.IntRange(0, 2).Draw(rt, "alerts"), "active_escalations": rapid.IntRange(0, 2).Draw(rt, "escalations"),
			}
			var err error
			switch found, _ := app.FindFirstRecordByData(collections.TriageScores, "patient", patient); {
			case found == nil:
				_, err = app.DB().Insert(collections.TriageScores, row(patient, columns)).Execute()
			case rapid.IntRange(0, 4).Draw(rt, "how") == 0:
				_, err = app.DB().Delete(collections.TriageScores, dbx.HashExp{"patient": patient}).Execute()
			default:
				_, err = app.DB().Update(collections.TriageScores, columns, dbx.HashExp{"patient": patient}).Execute()
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		var differ int
		err := app.DB().NewQuery(`SELECT COUNT(*) FROM (
			SELECT risk_level, needs_review, unacknowledged, patients, risk_scores, alerts, escalations, unanswered FROM triage_totals WHERE patients != 0 OR alerts != 0 OR escalations != 0 OR risk_scores != 0
			EXCEPT SELECT risk_level, needs_review, unacknowledged_alerts > 0, COUNT(*), SUM(risk_score), SUM(unacknowledged_alerts), SUM(active_escalations), SUM(risk_score >= 86)
				FROM triage_scores WHERE listed GROUP BY 1, 2, 3)`).Row(&differ)
		if err != nil || differ != 0 {
			rt.Fatalf("%d groups differ (%v)", differ, err)
		}
		var listed, grouped int
		err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM triage_scores WHERE listed), (SELECT SUM(patients) FROM triage_totals)`).Row(&listed, &grouped)
		if err != nil || listed != grouped {
			rt.Fatalf("%d listed, %d in groups (%v)", listed, grouped, err)
		}
	})
}

func explain(t *testing.T, app core.App, query string) string {
	t.Helper()
	var steps []struct {
		Detail string `db:"detail"`
	}
	if err := app.DB().NewQuery("EXPLAIN QUERY PLAN " + query).All(&steps); err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for _, step := range steps {
		plan.WriteString(step.Detail + "\n")
	}
	return plan.String()
}

// Rescore recomputes everything from the stored rows.
func TestRescore(t *testing.T) {
	app := vigiltest.NewApp(t)
	const patient = "0194c5a8-0000-7000-8000-000000000001"
	created := now.Add(-72 * time.Hour)
	if err := triage.AddRow(app, patient, created); err != nil {
		t.Fatal(err)
	}
	enrolled := vigiltest.RowCounts(t, app)
	place, err := triage.Rescore(app, patient, now)
	if err != nil || place.Score.Level != triage.RiskNoData || place.NeedsReview {
		t.Fatalf("a new patient: %+v (%v)", place, err)
	}
	latest := triage.Latest{}.With(pressure(150, 85), vitals.OriginDevice).With(weighing(83), vitals.OriginDevice)
	if err := triage.SaveRow(app, patient, triage.ComputedRow{Latest: latest}, now); err != nil {
		t.Fatal(err)
	}
	insert(t, app, collections.Observations, observation(patient, "final", 80, now.Add(-2*day)))
	insert(t, app, collections.Observations, observation(patient, "entered_in_error", 50, now.Add(-2*day)))
	insert(t, app, collections.Observations, observation("somebody-else", "final", 50, now.Add(-2*day)))
	for _, draft := range []alerts.Draft{
		{PatientID: patient, Finding: alerts.Finding{Type: "blood_pressure", Level: alerts.Warning}},
		{PatientID: "somebody-else", Finding: alerts.Finding{Type: "pulse", Level: alerts.Critical}},
	} {
		if _, err := alerts.Store(app, draft, now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	insert(t, app, collections.Alerts, dbx.Params{
		"id": collections.NumberID(99), "patient": patient, "level": "critical", "type": "pulse",
		"status": "resolved", "acknowledged": true, "created_at": collections.FormatInstant(now.Add(-7 * day)),
	}) // too old to count
	insert(t, app, collections.Escalations, dbx.Params{"patient": patient, "priority": "urgent", "status": "in_progress", "created_by": "nurse@vigil.test"})
	insert(t, app, collections.Escalations, dbx.Params{"patient": patient, "priority": "stat", "status": "resolved", "created_by": "system"})

	place, err = triage.Rescore(app, patient, now)
	if err != nil {
		t.Fatal(err)
	}
	// 33.8 for the gain of 3 kg (0.6 + 0.25 × 0.7 ÷ 2.3), 5 for the pressure as the second kind, 4.2 for the alert, 6.4 for the time.
	want := map[string]float64{"vitals": 38.8, "alerts": 4.2, "review": 6.4, "floor": 51, "danger": 16}
	if diff := cmp.Diff(want, pointsOf(place.Score)); diff != "" {
		t.Error(diff)
	}
	if place.Unacknowledged != 1 || place.ActiveEscalations != 1 || !place.NeedsReview {
		t.Errorf("%+v", place)
	}
	stored, err := app.FindFirstRecordByData(collections.TriageScores, "patient", patient)
	if err != nil {
		t.Fatal(err)
	}
	for column, value := range map[string]any{
		"risk_score": 67.0, "risk_level": "warning", "unacknowledged_alerts": 1.0, "unacknowledged_critical": 0.0,
		"oldest_unacknowledged_at": collections.FormatInstant(now.Add(-time.Hour)), "active_escalations": 1.0, "needs_review": true,
		"last_reading_at": collections.FormatInstant(now.Add(-time.Hour)), "scored_at": collections.FormatInstant(now), "enrolled_at": collections.FormatInstant(created),
	} {
		if got := stored.Get(column); got != value {
			t.Errorf("%s is %v, want %v", column, got, value)
		}
	}
	added := vigiltest.RowsAdded(t, app, enrolled)
	if added[collections.TriageScores] != 0 {
		t.Errorf("%d rows of triage scores more", added[collections.TriageScores])
	}
	if _, err := triage.Rescore(app, "nobody", now); !collections.IsNotFound(err) {
		t.Errorf("no patient: %v", err)
	}
}

func observation(patient, status string, kg float64, at time.Time) dbx.Params {
	return dbx.Params{
		"id": collections.NewUUID(), "patient": patient, "observation_type": "weight", "weight_kg": kg, "status": status,
		"measured_at": collections.FormatInstant(at),
	}
}

func BenchmarkListFirstPage(b *testing.B) {
	app := vigiltest.NewApp(b)
	err := app.RunInTransaction(func(tx core.App) error {
		for i := range 10_000 {
			columns := dbx.Params{"risk_score": (i*37)%100 + 1, "unacknowledged_alerts": i % 4, "needs_review": i%5 == 0}
			if _, err := tx.DB().Insert(collections.TriageScores, row(collections.NewUUID(), columns)).Execute(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, filter := range map[string]triage.Filter{"all": {}, "needs review": {NeedsReview: new(true)}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if page, _, err := triage.List(app, filter, 0, 20); err != nil || len(page) != 20 {
					b.Fatal(len(page), err)
				}
			}
		})
	}
}
