package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// silentFrom is the number of missing readings from which the rule VigilGatewaySilent is pending.
const silentFrom = 10

// storeGatewayReadings stores readings of a practice that measures in the mornings and evenings from Monday to Saturday, hourly a number of them at
// random moments: never at night or on Sundays.
func storeGatewayReadings(t *testing.T, app core.App, zone *time.Location, first time.Time, days, hourly int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	err := app.RunInTransaction(func(tx core.App) error {
		for day := range days {
			date := first.AddDate(0, 0, day)
			if date.Weekday() == time.Sunday {
				continue
			}
			for _, hour := range []int{7, 8, 9, 10, 17, 18} {
				for n := range hourly {
					at := time.Date(date.Year(), date.Month(), date.Day(), hour, 0, random.IntN(3600), 0, zone)
					key := fmt.Sprintf("%d-%d-%d", day, hour, n)
					_, err := tx.DB().NewQuery(`INSERT INTO observations (id, patient, observation_type, measured_at, source, weight_kg, status, reading_key, gateway_key, created_at)
						VALUES ({:key}, 'p', 'weight', {:at}, 'gateway', 80, 'final', {:key}, {:key}, {:at})`).
						Bind(dbx.Params{"key": key, "at": collections.FormatInstant(at)}).Execute()
					if err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func missing(t *testing.T, app core.App, at time.Time, zone *time.Location) int {
	t.Helper()
	count, err := ingest.EstimateMissingReadings(app, at, zone)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// Over a month with a change of the clocks a practice that sends as always is never silent, at night, on Sundays or between two readings. When its
// gateway stops, it is found within the hours in which the practice measures, and not before.
func TestSilentGatewayOverAMonth(t *testing.T) {
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 2, 2, 0, 0, 0, 0, zone) // a Monday; clocks change on March 8
	for _, hourly := range []int{3, 40} {
		t.Run(fmt.Sprint(hourly, " an hour"), func(t *testing.T) {
			app := vigiltest.NewApp(t)
			storeGatewayReadings(t, app, zone, first, 56, hourly, uint64(hourly))
			end := first.AddDate(0, 0, 56) // the Monday after
			for at := first.AddDate(0, 0, 28); at.Before(end); at = at.Add(20 * time.Minute) {
				if count := missing(t, app, at, zone); count >= silentFrom {
					t.Errorf("%s: %d missing", at.Format("Mon Jan 2 15:04"), count)
				}
			}
			for _, silence := range []struct{ from, clear, found time.Time }{ // the gateway stops; not yet found; found
				{end.AddDate(0, 0, -1), end.Add(7 * time.Hour), end.Add(11 * time.Hour)},                                                        // on Sunday
				{end.AddDate(0, 0, -3).Add(9 * time.Hour), end.AddDate(0, 0, -3).Add(9 * time.Hour), end.AddDate(0, 0, -3).Add(19 * time.Hour)}, // on Friday at 9
			} {
				if _, err := app.DB().NewQuery("DELETE FROM observations WHERE created_at >= {:from}").Bind(dbx.Params{"from": collections.FormatInstant(silence.from)}).Execute(); err != nil {
					t.Fatal(err)
				}
				if count := missing(t, app, silence.clear, zone); count >= silentFrom {
					t.Errorf("at %s already %d missing", silence.clear, count)
				}
				for _, later := range []time.Duration{0, 14 * 24 * time.Hour, 50 * 24 * time.Hour} { // silence does not become the pattern
					if count := missing(t, app, silence.found.Add(later), zone); count < silentFrom {
						t.Errorf("at %s only %d missing", silence.found.Add(later), count)
					}
				}
			}
		})
	}
}

// One week of an outage in the pattern changes nothing; a practice of less than three weeks has no pattern, and one without a gateway is not silent.
func TestPatternOfGateway(t *testing.T) {
	first := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	app := vigiltest.NewApp(t)
	if count := missing(t, app, first, time.UTC); count != 0 {
		t.Errorf("without a gateway %d are missing", count)
	}
	storeGatewayReadings(t, app, time.UTC, first, 35, 12, 7)
	silentAt := first.AddDate(0, 0, 28).Add(6 * time.Hour)
	for _, statement := range []string{
		"DELETE FROM observations WHERE created_at >= '" + collections.FormatInstant(silentAt) + "'",
		"DELETE FROM observations WHERE created_at BETWEEN '" + collections.FormatInstant(first.AddDate(0, 0, 14)) + "' AND '" + collections.FormatInstant(first.AddDate(0, 0, 21)) + "'",
	} {
		if _, err := app.DB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if count := missing(t, app, silentAt.Add(3*time.Hour), time.UTC); count < 20 {
		t.Errorf("after a week of an outage %d are missing", count)
	}
	if _, err := app.DB().NewQuery("DELETE FROM observations WHERE created_at < '" + collections.FormatInstant(first.AddDate(0, 0, 14)) + "'").Execute(); err != nil {
		t.Fatal(err)
	}
	if count := missing(t, app, silentAt.Add(3*time.Hour), time.UTC); count != 0 {
		t.Errorf("after a fortnight %d are missing", count)
	}
}
