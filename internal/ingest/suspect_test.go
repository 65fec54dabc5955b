package ingest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// suspectRules are the rules of a practice with suspect checks.
var suspectRules = func() ingest.Rules {
	wary := rules
	wary.Suspect = vitals.Tolerance{Percent: 10, Amount: 10}
	return wary
}()

// Readings of several people on one scale, in any order, confirmed or retracted: after each step the stored totals agree with the readings,
// and suspect ones are in none of them.
func TestSuspectReadingsAreNotCounted(t *testing.T) {
	for seed := range vigiltest.Rounds(3, 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 33))
			app, engine := newApp(t, suspectRules)
			w := startWriter(t, app, engine)
			var people []string
			for i, zone := range []string{"", "Australia/Lord_Howe", "Europe/Berlin"} {
				people = append(people, vigiltest.Patient(t, app, dbx.Params{"time_zone": zone}))
				vigiltest.Assign(t, app, fmt.Sprint("W-", i), people[i], now.AddDate(-1, 0, 0))
			}
			var stored []string
			states := map[ingest.ReviewState]int{}
			for i := range 120 {
				which := random.IntN(len(people))
				when := now.Add(time.Duration(i-120)*6*time.Hour - time.Duration(random.IntN(2)*random.IntN(30))*time.Hour)
				kg := []float64{88, 88, 88, 88, 62, 90, 176.4}[random.IntN(7)] + float64(random.IntN(30))/10
				outcome, err := w.Submit(t.Context(), gatewaySubmission(people[which], from(fmt.Sprint("W-", which), at(weight(kg), when))))
				if err != nil {
					t.Fatal(err)
				}
				stored = append(stored, outcome.Observation.ID)
				states[outcome.Observation.Review]++
				switch id := stored[random.IntN(len(stored))]; random.IntN(6) {
				case 0:
					if _, err := engine.Retract(app, id, "typed wrongly", nurse, now); err != nil {
						t.Fatal(err)
					}
				case 1:
					if o, err := engine.ConfirmSuspect(app, id, ingest.Confirmation{}, nurse, now); err == nil && o.Review != ingest.Confirmed {
						t.Fatalf("%s is %s after it was confirmed", id, o.Review)
					}
				}
				if _, differences, err := w.VerifyCache(app, now); err != nil || differences != "" {
					t.Fatalf("after %d readings: %v\n%s", i+1, err, differences)
				}
				wantConsistent(t, app, people[which])
			}
			if states[ingest.Suspect] < 10 || states[ingest.Confirmed] < 1 || states[ingest.Accepted] < 40 {
				t.Errorf("the readings were %v", states)
			}
			if _, wrong := recount(t, app, engine); wrong != 0 {
				t.Errorf("%d days are counted wrongly", wrong)
			}
			if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
				t.Errorf("audit chain: %+v (%v)", result, err)
			}
		})
	}
}

// wantConsistent compares a patient's stored totals with the readings.
func wantConsistent(t *testing.T, app core.App, patient string) {
	t.Helper()
	for what, query := range map[string]string{
		"suspect readings on their way to the EMR":       `SELECT o.id FROM observations o JOIN transmissions t ON t.observation = o.id WHERE o.status = 'suspect'`,
		"suspect readings with a FHIR form":              `SELECT id FROM observations WHERE status = 'suspect' AND fhir_status != ''`,
		"readings that hold and are not sent":            `SELECT id FROM observations WHERE status = 'final' AND id NOT IN (SELECT observation FROM transmissions)`,
		"suspect readings with an alert":                 `SELECT o.id FROM observations o JOIN alerts a ON a.observation = o.id WHERE o.status = 'suspect' AND a.type != 'suspect_reading' AND a.status = 'active'`,
		"questions open about what is decided":           `SELECT o.id FROM observations o JOIN alerts a ON a.observation = o.id WHERE o.status != 'suspect' AND a.type = 'suspect_reading' AND a.status IN ('active', 'acknowledged')`,
		"suspect by one column only":                     `SELECT id FROM observations WHERE (status = 'suspect') != (review_state = 'suspect') AND status != 'entered_in_error'`,
		"confirmed without a user, or by a user and not": `SELECT id FROM observations WHERE (review_state = 'confirmed') != (confirmed_by != '') OR (confirmed_by != '') != (confirmed_at != '')`,
		"first readings of a day that are not its own":   `SELECT d.day FROM reading_days d LEFT JOIN observations o ON o.id = d.first_observation WHERE o.status = 'suspect'`,
	} {
		if rows := texts(t, app, query); len(rows) > 0 {
			t.Fatalf("%s: %q", what, rows)
		}
	}
	snapshot, err := triage.ReadSnapshot(app, patient, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	want := texts(t, app, `SELECT measured_at FROM observations WHERE status = 'final' AND patient = '`+patient+`' ORDER BY measured_at DESC LIMIT 1`)
	if got := collections.FormatInstant(snapshot.Latest.MeasuredAt()); got != strings.Join(want, "") {
		t.Fatalf("the latest weight is of %q, want %q", got, want)
	}
}

// A suspect reading and its corroboration in one commit leave the same as in two.
func TestSuspectConfirmedInOneCommit(t *testing.T) {
	app, engine := newApp(t, suspectRules)
	patient := vigiltest.Patient(t, app, nil)
	vigiltest.Assign(t, app, "W-1", patient, now.AddDate(-1, 0, 0))
	for i := range 3 {
		storeReading(t, app, engine, gatewaySubmission(patient, from("W-1", at(weight(88), now.AddDate(0, 0, i-4)))))
	}
	w := ingest.NewWriter(engine, clock, quiet, func([]ingest.Outcome) {})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for i, kg := range []float64{76, 76.5, 62} {
		work.Go(func() {
			if _, err := w.Submit(ctx, gatewaySubmission(patient, from("W-1", at(weight(kg), now.Add(time.Duration(i-9)*time.Minute))))); err != nil {
				t.Error(err)
			}
		})
		for w.QueueDepth() <= i {
			runtime.Gosched()
		}
	}
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	work.Wait()
	cancel()
	run.Wait()
	wantConsistent(t, app, patient)
	if got := strings.Join(texts(t, app, `SELECT weight_kg || ' ' || review_state FROM observations ORDER BY measured_at DESC LIMIT 3`), ", "); got != "62.0 suspect, 76.5 confirmed, 76.0 confirmed" {
		t.Error(got)
	}
	if got := strings.Join(texts(t, app, `SELECT status || ' ' || readings FROM daily_counts WHERE day = '2026-01-15' ORDER BY status`), ", "); got != "final 2, suspect 1" {
		t.Error(got)
	}
	if _, wrong := recount(t, app, engine); wrong != 0 {
		t.Errorf("%d days are counted wrongly", wrong)
	}
}

// A reading created as a record can be suspect, and the record shows it.
func TestCreateFromRecordSuspect(t *testing.T) {
	app, engine := newApp(t, suspectRules)
	patient := vigiltest.Patient(t, app, nil)
	for i := range 3 {
		storeReading(t, app, engine, gatewaySubmission(patient, at(weight(88), now.AddDate(0, 0, i-4))))
	}
	collection, err := app.FindCollectionByNameOrId(collections.Observations)
	if err != nil {
		t.Fatal(err)
	}
	record := core.NewRecord(collection)
	record.Load(map[string]any{"patient": patient, "observation_type": "weight", "weight_kg": 62, "measured_at": collections.FormatInstant(now)})
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*core.Record{record, find(t, app, collections.Observations, record.Id)} {
		check(t, r, map[string]any{"status": "suspect", "review_state": "suspect", "suspect_reason": "far_from_usual", "fhir_status": "", "fhir_version": 0.0})
	}
}

// A device that sends is not silent, for any user; the patient's expected reading is still missing.
func TestSuspectReadingEndsDeviceSilence(t *testing.T) {
	app, engine := newApp(t, suspectRules)
	patient := vigiltest.Patient(t, app, nil)
	for i := range 3 {
		storeReading(t, app, engine, gatewaySubmission(patient, from("W-1", at(weight(88), now.AddDate(0, 0, i-5)))))
	}
	for i, kind := range []string{"no_reading_24h", "missed_reading"} {
		if _, err := app.DB().Insert(collections.Alerts, dbx.Params{
			"id": fmt.Sprintf("%015d", 900+i), "patient": patient, "type": kind, "level": "no_data", "status": "active", "device_id": "W-1",
			"measured_at": collections.FormatInstant(now.AddDate(0, 0, -1)), "created_at": collections.FormatInstant(now.AddDate(0, 0, -1)),
		}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if o := storeReading(t, app, engine, gatewaySubmission(patient, from("W-1", at(weight(62), now)))).Observation; o.Review != ingest.Suspect {
		t.Fatalf("it is %s", o.Review)
	}
	if got := strings.Join(texts(t, app, `SELECT type || ' ' || status FROM alerts ORDER BY type`), ", "); got != "missed_reading active, no_reading_24h auto_resolved, suspect_reading active" {
		t.Error(got)
	}
}
