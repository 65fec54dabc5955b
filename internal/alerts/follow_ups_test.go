package alerts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A follow-up reminds the user who requested it, once.
func TestRemindFollowUps(t *testing.T) {
	app := vigiltest.NewApp(t)
	nurse := vigiltest.User(t, app, authz.Nurse, vigiltest.Email("nurse@vigil.test"))
	by := audit.User(nurse.Number(), nurse.Email(), nurse.Role(), audit.Origin{})
	alert := find(t, app, store(t, app, alerts.Draft{Finding: alerts.Finding{Type: "pulse", Level: alerts.Warning, Message: "Pulse 120 bpm."}}, now))
	action := alerts.Action{Move: alerts.Acknowledge, FollowUpAt: now.Add(time.Hour)}
	if err := alerts.Act(app, alert, action, by, now); err != nil {
		t.Fatal(err)
	}
	notified := func() (list []string) {
		if err := app.DB().NewQuery(`SELECT kind || ' ' || severity || ' ' || user || ' ' || key FROM announcements ORDER BY rowid`).Column(&list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	for after, want := range []int{0, 1, 0} {
		notified, err := alerts.RemindFollowUps(t.Context(), app, now.Add(time.Duration(after)*time.Hour))
		if err != nil || notified != want {
			t.Errorf("after %d hours %d are reminded (%v), want %d", after, notified, err, want)
		}
	}
	want := "follow_up_due info " + nurse.Id + " alert " + alert.Id + " follow-up " + collections.FormatInstant(now.Add(time.Hour))
	if got := notified(); !slices.Equal(got, []string{want}) {
		t.Errorf("announcements: %v", got)
	}
	if _, err := app.DB().Update(collections.Alerts, dbx.Params{"follow_up_told": false, "follow_up_by": "gone@vigil.test"}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	if n, err := alerts.RemindFollowUps(t.Context(), app, now.Add(9*time.Hour)); err != nil || n != 1 || len(notified()) != 1 {
		t.Errorf("without a user: %d (%v)", n, err)
	}
}
