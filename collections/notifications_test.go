package collections_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A push covers further alerts of the same patient, type and level for 30 minutes, for each user who got it.
func TestPushInterval(t *testing.T) {
	app, at := vigiltest.NewApp(t), now
	results := map[string]string{ // of the pushes to each user
		"nurse": collections.PushSent, "other": collections.PushPending, "refused": collections.PushFailed, "gone": collections.PushExpiredToken,
		"native": collections.PushNoTransport, "asleep": collections.PushSkippedQuietHours, "deaf": collections.PushSkippedPreference,
	}
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
			isCovered, err := collections.HasCoveringPush(app, entry, at)
			if err != nil || isCovered != covered[i] {
				t.Errorf("%s: entry %d is covered: %t, %v", what, i, isCovered, err)
			}
			if !isCovered {
				push := collections.PushDraft{Notification: entry.ID, Token: "t", User: entry.User, Status: results[entry.User]}
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
	for _, user := range slices.Sorted(maps.Keys(results)) {
		alert(user, "p9", "weight", "warning")
		plan(user+", the first", false)
		alert(user, "p9", "weight", "warning")
		covers := results[user] == collections.PushSent || results[user] == collections.PushPending
		plan(user+", where only a sent or pending push covers", covers)
		alert(user, "p8", "weight", "warning")
		alert(user, "p8", "weight", "warning")
		plan(user+", two at once", false, covers)
	}
}

// An escalation is planned before the alerts that its push covers, even with a backlog of alerts.
func TestEscalationsArePlannedBeforeAlerts(t *testing.T) {
	app := vigiltest.NewApp(t)
	for i, channel := range []string{"reminders", "alerts", "alerts", "escalations"} {
		draft := collections.NotificationDraft{User: "nurse", Channel: channel, Type: channel, Patient: "p1", InApp: true}
		if err := collections.InsertNotification(app, draft, now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	due, err := collections.UnplannedNotifications(app, now.Add(time.Minute), 2)
	if err != nil || len(due) != 2 || due[0].Channel != "escalations" || due[1].Channel != "reminders" {
		t.Errorf("%+v, %v", due, err)
	}
}
