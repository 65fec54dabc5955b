package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
)

// A ladder reminder repeats why the escalation was opened and is no new notification of values, so a patient who improves
// is not reported as worse.
func TestLadderReminderRepeatsNoValues(t *testing.T) {
	w := newNightShift(t, 0)
	ladder := escalations.Ladder{
		Zone: newYork, Overdue: map[escalations.Priority]time.Duration{escalations.Stat: 15 * time.Minute},
		Tiers: map[escalations.Priority]escalations.Deadlines{escalations.Stat: {15 * time.Minute, 30 * time.Minute, time.Hour}},
	}
	w.oxygen(86)
	w.wantPushed("opened", 1, 1)
	w.now = w.now.Add(time.Minute)
	w.oxygen(70)
	w.wantPushed("worse", 1, 1)
	w.now = w.now.Add(15 * time.Minute)
	if _, err := ladder.Sweep(t.Context(), w.app, w.now); err != nil {
		t.Fatal(err)
	}
	if notified := w.queryRows(t, `SELECT kind FROM announcements WHERE kind LIKE 'escalation%' ORDER BY rowid`); len(notified) != 3 || notified[2] == notified[0] {
		t.Fatalf("notified: %q", notified)
	}
	w.pushed(w.people[authz.Nurse], "escalations")
	w.pushed(w.people[authz.ClinicalManager], "escalations")
	w.now = w.now.Add(time.Minute)
	w.oxygen(80)
	w.wantPushed("better", 0, 0)
	w.now = w.now.Add(time.Minute)
	w.oxygen(66)
	w.wantPushed("worse than the last notified", 1, 1)
	if n := len(w.joined()); n != 2 {
		t.Errorf("its history has %d steps", n)
	}
}
