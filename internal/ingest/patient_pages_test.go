package ingest_test

import (
	"context"
	"database/sql"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func TestReadingKinds(t *testing.T) {
	app, _ := newApp(t, rules)
	if got := slices.Sorted(slices.Values(collections.ReadingKinds(app))); !slices.Equal(got, slices.Sorted(slices.Values(vitals.KindNames))) {
		t.Errorf("%v, but there are %v", got, vitals.KindNames)
	}
}

// ofEachKind returns a plausible reading of each kind for a number from 0 to 89.
func ofEachKind(n float64) []vitals.Reading {
	return []vitals.Reading{
		weight(50 + n), bloodPressure(100+n, 60), vitals.Reading{Kind: vitals.BodyTemperature}.With(vitals.TemperatureC, 36+n/50),
		vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 90+math.Mod(n, 10)), vitals.Reading{Kind: vitals.BloodGlucose}.With(vitals.GlucoseMgDL, 100+n),
	}
}

// A patient's readings of several kinds, many of the same moment, have one order on all pages under every filter: by time and id.
func TestPatientPages(t *testing.T) {
	app, engine := newApp(t, rules)
	random := rand.New(rand.NewPCG(7, 3))
	ada, bob := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	type row struct{ ID, At, Status string }
	var stored []row
	for i := range 90 {
		when := now.Add(-time.Duration(random.IntN(25)) * time.Hour)
		reading := ofEachKind(float64(i))[random.IntN(5)]
		storeReading(t, app, engine, gatewaySubmission(bob, at(reading, when)))
		outcome := storeReading(t, app, engine, gatewaySubmission(ada, at(reading, when)))
		if outcome.Duplicate {
			continue
		}
		status := []string{"failed", "transmitted"}[i%2]
		if _, err := app.DB().Update(collections.Observations, dbx.Params{"fhir_status": status}, dbx.HashExp{"id": outcome.Observation.ID}).Execute(); err != nil {
			t.Fatal(err)
		}
		stored = append(stored, row{outcome.Observation.ID, collections.FormatInstant(when), status})
	}
	ties := 0
	for _, oldestFirst := range []bool{false, true} {
		slices.SortFunc(stored, func(a, b row) int {
			c := strings.Compare(a.At, b.At)
			if c == 0 {
				ties++
				c = strings.Compare(a.ID, b.ID)
			}
			if oldestFirst {
				return c
			}
			return -c
		})
		for _, f := range []collections.ObservationFilter{
			{}, {FHIRStatus: "failed"}, {From: now.Add(-9 * time.Hour)}, {From: now.Add(-20 * time.Hour), To: now.Add(-4 * time.Hour), FHIRStatus: "transmitted"},
		} {
			f.PatientID, f.OldestFirst, f.Zone = ada, oldestFirst, newYork
			var want, got []string
			for _, r := range stored {
				if (f.FHIRStatus == "" || r.Status == f.FHIRStatus) && (f.From.IsZero() || r.At >= collections.FormatInstant(f.From)) && (f.To.IsZero() || r.At <= collections.FormatInstant(f.To)) {
					want = append(want, r.ID)
				}
			}
			for offset := 0; ; offset += 7 {
				page, total, err := ingest.ListObservations(app, f, offset, 7)
				if err != nil || total != len(want) {
					t.Fatalf("%+v: %d in all, want %d (%v)", f, total, len(want), err)
				}
				for _, o := range page {
					got = append(got, o.ID)
				}
				if len(page) < 7 {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v: %s", f, diff)
			}
		}
		var want []string
		for _, r := range stored {
			want = append(want, r.ID)
		}
		if diff := cmp.Diff(want, searched(t, app, ada, !oldestFirst)); diff != "" {
			t.Errorf("searched page by page, oldest first %t: %s", oldestFirst, diff)
		}
	}
	if ties < 20 {
		t.Errorf("only %d readings shared a moment", ties)
	}
}

// searched returns the ids of a patient's readings, paging by the last row, three per page.
func searched(t *testing.T, app core.App, patient string, newestFirst bool) (ids []string) {
	t.Helper()
	search := collections.ReadingSearch
	k := collections.SearchPage{By: collections.ByMeasured, Descending: newestFirst, Limit: 3, Kinds: vitals.KindNames}
	for {
		page, err := search.Page(t.Context(), app, collections.Conditions{search.OfPatients([]string{patient})}, k)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range page {
			ids = append(ids, record.Id)
		}
		if len(page) < k.Limit {
			return ids
		}
		last := page[len(page)-1]
		k.After, k.AfterID = search.SortKey(last, k.By), last.Id
	}
}

// The cost of a page does not grow with the number of readings: no step sorts more than the readings of one moment.
func TestPatientPagesDoNotSort(t *testing.T) {
	app, engine := newApp(t, rules)
	patient, kinds := vigiltest.Patient(t, app, nil), ofEachKind(0)
	for _, reading := range kinds {
		storeReading(t, app, engine, gatewaySubmission(patient, at(reading, now.Add(-time.Minute))))
	}
	var plan []string
	app.ConcurrentDB().(*dbx.DB).QueryLogFunc = func(_ context.Context, _ time.Duration, query string, _ *sql.Rows, _ error) {
		if strings.Contains(query, "UNION ALL") {
			plan = append(plan, query)
		}
	}
	for _, oldestFirst := range []bool{false, true} {
		f := collections.ObservationFilter{PatientID: patient, OldestFirst: oldestFirst, From: now.Add(-time.Hour), To: now}
		if _, _, err := ingest.ListObservations(app, f, 40, 20); err != nil {
			t.Fatal(err)
		}
	}
	app.ConcurrentDB().(*dbx.DB).QueryLogFunc = nil
	if len(plan) != 2 {
		t.Fatalf("%d pages were merged", len(plan))
	}
	for _, query := range plan {
		var steps []struct {
			Detail string `db:"detail"`
		}
		if err := app.DB().NewQuery("EXPLAIN QUERY PLAN " + query).All(&steps); err != nil {
			t.Fatal(err)
		}
		walked, sorted := 0, 0
		for _, step := range steps {
			if strings.Contains(step.Detail, "idx_observations_patient_kind (patient=? AND observation_type=? AND measured_at>? AND measured_at<?)") {
				walked++
			}
			if step.Detail == "USE TEMP B-TREE FOR ORDER BY" { // of the page itself, by row number
				sorted++
			}
		}
		if walked != len(kinds) || sorted != 1 {
			t.Errorf("%d walks, %d sorts in %s\n%v", walked, sorted, query, steps)
		}
	}
}
