package triage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// crowd fills the list with patients of spread scores and last readings, an hour to two weeks old.
func crowd(b *testing.B, patients int) core.App {
	b.Helper()
	app := vigiltest.NewApp(b)
	err := app.RunInTransaction(func(tx core.App) error {
		tx = collections.WithStatementCache(tx)
		for i := range patients {
			id := fmt.Sprintf("0194c5a8-0000-7000-8000-%012d", i)
			if _, err := tx.DB().NewQuery(`INSERT INTO triage_scores (id, patient, listed, risk_level, enrolled_at, oldest_unacknowledged_at)
				VALUES ({:id}, {:id}, TRUE, 'no_data', {:at}, {:at})`).Bind(map[string]any{
				"id": id, "at": collections.FormatInstant(now.AddDate(0, -1, 0)),
			}).Execute(); err != nil {
				return err
			}
			r := pressure(100+float64(i*37%110), 80)
			r.MeasuredAt = now.Add(-time.Duration(1+i*7%336) * time.Hour)
			snapshot := triage.PatientSnapshot{Thresholds: defaults, Latest: triage.Latest{}.With(r, vitals.OriginDevice), EnrolledAt: now.AddDate(0, -1, 0)}
			if err := triage.SaveRow(tx, id, snapshot.ComputeRow(now), now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return app
}

// report logs the median and the slow end of a call's durations.
func report(b *testing.B, call func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkCrowd measures the list of 100,000 patients: a page with its exact count, the totals, and the hourly rescoring, with no changed
// score and with almost all changed.
func BenchmarkCrowd(b *testing.B) {
	const patients = 100_000
	app := crowd(b, patients)
	for name, filter := range map[string]triage.Filter{
		"page": {}, "page of a level": {RiskLevel: "normal"}, "page with alerts": {Unacknowledged: new(true)}, "page needing review": {NeedsReview: new(true)},
	} {
		b.Run(name, func(b *testing.B) {
			report(b, func() error {
				_, total, err := triage.List(app, filter, 0, 20)
				if name == "page" && total != patients {
					return fmt.Errorf("%d in all", total)
				}
				return err
			})
		})
	}
	b.Run("stats", func(b *testing.B) {
		report(b, func() error {
			_, err := triage.ReadStats(app, "", now)
			return err
		})
	})
	later := now
	for _, name := range []string{"rescore few", "rescore many"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, changed, err := triage.RescoreAll(b.Context(), app, later, func([]string) {})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(changed), "changed")
			}
		})
		later = now.Add(60 * day)
	}
}
