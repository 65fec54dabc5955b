package collections_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// One push in half an hour speaks for all alerts of the same patient, type and level, to each person who got it.
func TestPushesAreSpaced(t *testing.T) {
	app, at := vigiltest.NewApp(t), now
	alerts := 0
	alert := func(user, patient, kind, level string) {
		t.Helper()
		alerts++
		id := collections.NumberID(int64(alerts))
		row := dbx.Params{"id": id, "patient": patient, "type": kind, "level": level, "status": "active"}
		if _, err := app.DB().Insert(collections.Alerts, row).Execute(); err != nil {
			t.Fatal(err)
		}
		if err := collections.InsertNotification(app, collections.NotificationDraft{User: user, Channel: "alerts", Type: "threshold_" + level, Patient: patient, Alert: id, InApp: true}, at); err != nil {
			t.Fatal(err)
		}
	}
	plan := func(what string, covered ...bool) {
		t.Helper()
		entries, err := collections.UnplannedNotifications(app, at, 20)
		if err != nil || len(entries) != len(covered) {
			t.Fatalf("%s: %d entries, want %d; %v", what, len(entries), len(covered), err)
		}
		for i, entry := range entries {
			if entry.Covered != covered[i] {
				t.Errorf("%s: entry %d is covered: %t", what, i, entry.Covered)
			}
			if !entry.Covered {
				push := collections.PushDraft{Notification: entry.ID, Token: "t", User: entry.User, Status: collections.PushSent}
				if entry.User == "asleep" {
					push.Status = collections.PushSkippedQuietHours
				}
				if err := collections.InsertPush(app, push, at); err != nil {
					t.Fatal(err)
				}
			}
			if err := collections.MarkPlanned(app, entry.ID, true, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	alert("nurse", "p1", "weight", "warning")
	alert("nurse", "p1", "weight", "warning")
	plan("two at once", false, true)
	at = at.Add(29 * time.Minute)
	alert("nurse", "p1", "weight", "warning")
	alert("nurse", "p1", "weight", "critical")
	alert("nurse", "p1", "pulse", "warning")
	alert("nurse", "p2", "weight", "warning")
	alert("other", "p1", "weight", "warning")
	plan("29 minutes later", true, false, false, false, false)
	at = at.Add(2 * time.Minute)
	alert("nurse", "p1", "weight", "warning")
	plan("31 minutes later", false)
	alert("asleep", "p1", "weight", "warning")
	plan("in quiet hours", false)
	alert("asleep", "p1", "weight", "warning")
	plan("a push that was not sent speaks for nobody", false)
}
