package alerts_test

import (
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// One snooze of a type at a time: a new one ends the one before; an ended one cannot be ended.
func TestSnoozes(t *testing.T) {
	app := vigiltest.NewApp(t)
	start := func(alertType string, critical bool, until, at time.Time) (snooze *collections.Snooze) {
		t.Helper()
		err := app.RunInTransaction(func(tx core.App) (err error) {
			draft := alerts.SnoozeDraft{Snooze: alerts.Snooze{Type: alertType, IncludeCritical: critical, EndsAt: until}, Reason: "Known."}
			snooze, err = alerts.StartSnooze(tx, patient, draft, nurse, at)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return snooze
	}
	stored := func(s *collections.Snooze) *collections.Snooze {
		t.Helper()
		found, err := collections.FindSnooze(app, patient, s.Number())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }

	first := start("pulse", true, hour(2), now)
	if s := stored(first); !s.InForce(hour(1)) || s.InForce(hour(2)) || !s.IncludeCritical() || s.Reason() != "Known." || s.CreatedBy() != "nurse@vigil.test" ||
		!s.EndsAt().Equal(hour(2)) || !s.CreatedAt().Equal(now) || s.PatientID() != patient || s.Type() != "pulse" {
		t.Errorf("stored: %t until %s by %s", s.IncludeCritical(), s.EndsAt(), s.CreatedBy())
	}
	weight := start("weight", false, hour(9), now)
	second := start("pulse", false, hour(4), hour(1))
	if s := stored(first); s.InForce(hour(1)) || !s.EndedAt().Equal(hour(1)) || s.EndedBy() != "nurse@vigil.test" {
		t.Errorf("the one before ended at %s by %s", s.EndedAt(), s.EndedBy())
	}
	third := start("pulse", false, hour(8), hour(5)) // the second has ended
	if s := stored(second); !s.EndedAt().Equal(hour(4)) || s.EndedBy() != "system" {
		t.Errorf("one that was over ended at %s by %s", s.EndedAt(), s.EndedBy())
	}
	if s := stored(weight); !s.InForce(hour(5)) {
		t.Error("another type ended too")
	}

	end := func(patientID string, number int64, at time.Time) (err error) {
		return app.RunInTransaction(func(tx core.App) error {
			_, err = alerts.EndSnooze(tx, patientID, number, nurse, at)
			return err
		})
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"of another patient": {end("p2", third.Number(), hour(6)), "not_found"},
		"unknown":            {end(patient, 999, hour(6)), "not_found"},
		"in force":           {end(patient, third.Number(), hour(6)), ""},
		"ended":              {end(patient, second.Number(), hour(6)), "invalid_state"},
		"run out":            {end(patient, weight.Number(), hour(9)), "invalid_state"},
	} {
		if got := vigiltest.Code(test.err); got != test.want {
			t.Errorf("%s: %q (%v), want %q", name, got, test.err, test.want)
		}
	}
	for current, want := range map[*bool]int{nil: 4, new(true): 1, new(false): 3} {
		if page, total, err := collections.PageOfSnoozes(app, patient, current, hour(6), 0, 10); err != nil || total != want || len(page) != want {
			t.Errorf("%d snoozes, want %d (%v)", total, want, err)
		}
	}
	var events int
	err := app.DB().NewQuery(`SELECT COUNT(*) FROM audit_log WHERE resource_type = 'Snooze' AND event IN ('snooze.create', 'snooze.end')`).Row(&events)
	if err != nil || events != 5 {
		t.Errorf("%d entries in the trail (%v)", events, err)
	}
}
