package triage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Time alone changes scores; unchanged rows are not written.
func TestRescoreAll(t *testing.T) {
	app := vigiltest.NewApp(t)
	calm, high := triage.Latest{}.With(pressure(120, 80), vitals.OriginDevice), triage.Latest{}.With(pressure(152, 80), vitals.OriginDevice)
	const patients = 560 // more than one page, more than one batch
	for i := range patients {
		id := fmt.Sprintf("patient %03d", i)
		if err := triage.AddRow(app, id, now); err != nil {
			t.Fatal(err)
		}
		latest := calm
		if i%2 == 0 {
			latest = high
		}
		if err := triage.SaveRow(app, id, triage.PatientSnapshot{Thresholds: defaults, Latest: latest, EnrolledAt: now}.ComputeRow(now), now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := app.DB().Update(collections.TriageScores, dbx.Params{"listed": false}, dbx.HashExp{"patient": "patient 000"}).Execute(); err != nil {
		t.Fatal(err)
	}
	scores := func() (text string) {
		err := app.DB().NewQuery("SELECT GROUP_CONCAT(DISTINCT risk_score || risk_level ORDER BY risk_score) FROM triage_scores WHERE listed").Row(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, step := range []struct {
		after   time.Duration
		changed int
		scores  string
	}{
		{0, 0, "1normal,25normal"},
		{time.Hour, 0, "1normal,25normal"},
		{168 * time.Hour, 559, "15normal"}, // the readings have left the week, the review is due
		{31 * day, 559, "0no_data"},
	} {
		notified := 0
		seen, changed, err := triage.RescoreAll(t.Context(), app, now.Add(step.after), func(ids []string) { notified += len(ids) })
		if seen != 559 || changed != step.changed || notified != changed || err != nil || scores() != step.scores {
			t.Errorf("after %s: %d seen, %d changed (%v): %s", step.after, seen, changed, err, scores())
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if seen, _, err := triage.RescoreAll(stopped, app, now, nil); seen != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %d seen (%v)", seen, err)
	}
}

// Scores of an earlier version are recomputed once.
func TestRescoreOutdated(t *testing.T) {
	app := vigiltest.NewApp(t)
	const patient = "0194c5a8-0000-7000-8000-000000000001"
	if err := triage.AddRow(app, patient, now); err != nil {
		t.Fatal(err)
	}
	if err := triage.SaveRow(app, patient, triage.ComputedRow{Latest: triage.Latest{}.With(pressure(190, 80), vitals.OriginDevice), Score: triage.Score{Value: 55, Level: triage.RiskWarning}}, now); err != nil {
		t.Fatal(err)
	}
	score := func(before dbx.Params) (value int) {
		t.Helper()
		if _, err := app.DB().Update(collections.TriageScores, before, dbx.HashExp{"patient": patient}).Execute(); err != nil {
			t.Fatal(err)
		}
		if err := triage.RescoreOutdated(t.Context(), app, now, func([]string) {}); err != nil {
			t.Fatal(err)
		}
		if err := app.DB().Select("risk_score").From(collections.TriageScores).Row(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	if got := score(dbx.Params{"risk_score": 55}); got != 55 {
		t.Errorf("scores of this version were recomputed: %d", got)
	}
	if got := score(dbx.Params{"risk_score": 55, "scored_at": ""}); got != 78 {
		t.Errorf("a score of an earlier program is %d", got)
	}
	if got := score(dbx.Params{"risk_score": 55}); got != 55 {
		t.Errorf("scores were recomputed twice: %d", got)
	}
}
