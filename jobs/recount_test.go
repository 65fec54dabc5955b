package jobs

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Wrong totals are corrected, the run fails, and administrators are notified once.
func TestWrongTotalsNotifyAdministrators(t *testing.T) {
	for name, damage := range map[string]string{
		"billing sums": `INSERT INTO billing_months (month, cpt_code, payer, provider, status, claims, amount_cents) VALUES ('2026-01', '99454', '', '', 'pending_review', 3, 100)`,
		"reading sums": `INSERT INTO daily_counts (day, observation_type, status, readings) VALUES ('2026-01-15', 'weight', 'final', 3)`,
	} {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			e := Engines{
				ReadingStore: ingest.NewReadingStore(ingest.Rules{PracticeZone: time.UTC}), Log: slog.New(slog.DiscardHandler),
				Clock: clockwork.NewFakeClockAt(time.Date(2026, 2, 2, 3, 0, 0, 0, time.UTC)),
			}
			row := rowOf(t, name)
			wantRun(t, app, e, row, 0, true)
			if _, err := app.NonconcurrentDB().NewQuery(damage).Execute(); err != nil {
				t.Fatal(err)
			}
			wantRun(t, app, e, row, 1, false)
			wantRun(t, app, e, row, 0, true)
			var announced []string
			if err := app.DB().Select("kind").From(collections.Announcements).Column(&announced); err != nil {
				t.Fatal(err)
			}
			if want := []string{string(notifications.ServiceTrouble)}; !slices.Equal(announced, want) {
				t.Errorf("announced %v, want %v", announced, want)
			}
		})
	}
}

func wantRun(t *testing.T, app core.App, e Engines, row job, wrong int, succeeds bool) {
	t.Helper()
	done, err := row.run(e, t.Context(), app)
	if (err == nil) != succeeds || done["wrong"] != wrong {
		t.Errorf("%v wrong, error %v", done["wrong"], err)
	}
}
