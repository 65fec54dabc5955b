package jobs

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Sums that were wrong are put right, the run fails, and the administrators hear of it once.
func TestWrongSumsAreTold(t *testing.T) {
	for name, damage := range map[string]string{ // none of it is told of
		"billing worklists": `DELETE FROM reading_days WHERE day > '2026-01-10'`,
		"billing sums":      `INSERT INTO billing_months (month, cpt_code, payer, provider, status, claims, amount_cents) VALUES ('2026-01', '99454', '', '', 'pending_review', 3, 100)`,
		"reading sums":      `INSERT INTO daily_counts (day, observation_type, status, readings) VALUES ('2026-01-15', 'weight', 'final', 3)`,
	} {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			e := Engines{
				Billing:  billing.New(billing.Settings{Zone: time.UTC, Enable2026Codes: true}),
				Readings: observations.NewEngine(observations.Rules{PracticeZone: time.UTC}), Log: slog.New(slog.DiscardHandler),
				Clock: clockwork.NewFakeClockAt(time.Date(2026, 2, 2, 3, 0, 0, 0, time.UTC)),
			}
			if name == "billing worklists" {
				wear(t, app)
			}
			row := rowOf(t, name)
			wantRun(t, app, e, row, 0, true)
			if _, err := app.NonconcurrentDB().NewQuery(damage).Execute(); err != nil {
				t.Fatal(err)
			}
			wantRun(t, app, e, row, 1, false)
			wantRun(t, app, e, row, 0, true)
			var told []string
			if err := app.DB().Select("kind").From(collections.Announcements).Column(&told); err != nil {
				t.Fatal(err)
			}
			if want := []string{string(notifications.ServiceTrouble)}; !slices.Equal(told, want) {
				t.Errorf("told %v, want %v", told, want)
			}
		})
	}
}

// wear has a patient send readings with a device on twenty days of January.
func wear(t *testing.T, app core.App) {
	t.Helper()
	patient := vigiltest.Patient(t, app, dbx.Params{"mrn": "W-1", "icd10_codes": `["I10"]`})
	vigiltest.Assign(t, app, "D-1", patient, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for day := range 20 {
		_, err := app.DB().Insert("reading_days", dbx.Params{
			"patient": patient, "day": time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), "observation_type": "weight",
			"first_observation": "x", "readings": 1, "device_readings": 1,
		}).Execute()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func wantRun(t *testing.T, app core.App, e Engines, row job, wrong int, succeeds bool) {
	t.Helper()
	done, err := row.run(e, t.Context(), app)
	if (err == nil) != succeeds || done["wrong"] != wrong {
		t.Errorf("%v wrong, error %v", done["wrong"], err)
	}
}
