package notifications_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Notifications that need no action appear in the list but are not pushed.
func TestInAppOnlyTypes(t *testing.T) {
	w := newPractice(t)
	provider := w.member(authz.Provider)
	if _, err := w.app.DB().Update("patients", dbx.Params{"primary_provider": provider.Id}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	w.device(provider, "/provider")
	for _, kind := range []notifications.Kind{notifications.ReadingSuperseded, notifications.EscalationWithdrawn} {
		w.announce(notifications.Announcement{Kind: kind, Severity: "critical", PatientID: w.patient, Key: string(kind)})
	}
	w.send()
	if rows := w.pushes(provider); len(rows) != 0 {
		t.Errorf("pushed: %+v", rows)
	}
	if diff := cmp.Diff([]string{"escalation_withdrawn", "late_reading"}, slices.Sorted(slices.Values(w.list(provider)))); diff != "" {
		t.Error(diff)
	}
}

// A push about a retracted reading does not cover a similar alert.
func TestRetractedPushCoversNoOther(t *testing.T) {
	for reason, pushes := range map[string]int{"": 1, "withdrawn": 2} {
		w := newPractice(t)
		nurse := w.member(authz.Nurse)
		w.device(nurse, "/nurse")
		if err := alertOf(w); err != nil {
			t.Fatal(err)
		}
		raise := func(alert, key string) {
			w.announce(notifications.Announcement{Kind: notifications.AlertRaised, Severity: "critical", PatientID: w.patient, AlertID: alert, Key: key})
			w.send()
		}
		first := collections.NumberID(1)
		raise(first, "1")
		if _, err := w.app.DB().Update("alerts", dbx.Params{"resolution_reason": reason}, dbx.HashExp{"id": first}).Execute(); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(5 * time.Minute)
		raise(secondAlertOf(w), "2")
		if rows := w.pushes(nurse); len(rows) != pushes {
			t.Errorf("%q: %+v", reason, rows)
		}
	}
}
