package notifications_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestAnnounceOnce(t *testing.T) {
	app := vigiltest.NewApp(t)
	now := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	for range 2 {
		a := notifications.Announcement{Kind: notifications.AlertRaised, Severity: "critical", Body: "Jane Doe: 190/120 mmHg", Key: "alert 1"}
		if err := notifications.Announce(app, a, now); err != nil {
			t.Fatal(err)
		}
	}
	rows := []struct {
		Body string `db:"body"`
	}{}
	if err := app.DB().NewQuery("SELECT body FROM announcements").All(&rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Body == "" || rows[0].Body == "Jane Doe: 190/120 mmHg" {
		t.Errorf("announcements: %v", rows)
	}
}
