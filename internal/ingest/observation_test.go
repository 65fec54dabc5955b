package ingest_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Totals come from the daily counts where possible. They must equal a count of the rows, for readings around the practice's midnight,
// retracted ones, deleted patients, and all delivery states.
func TestTotalsAreExact(t *testing.T) {
	app, engine := newApp(t, rules)
	random := rand.New(rand.NewPCG(11, 4))
	patients := []string{vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)}
	midnight := time.Date(now.Year(), now.Month(), now.Day()-3, 0, 0, 0, 0, newYork)
	for i := range 120 {
		measured := midnight.Add(time.Duration(random.IntN(48)) * time.Hour)
		if i%3 == 0 {
			measured = midnight.AddDate(0, 0, i%2).Add(time.Duration(random.IntN(5)-2) * time.Microsecond)
		}
		reading := at(weight(60+float64(i)), measured)
		if i%2 == 0 {
			reading = at(bloodPressure(100+float64(i%40), 60), measured)
		}
		id := storeReading(t, app, engine, gatewaySubmission(patients[random.IntN(len(patients))], reading)).Observation.ID
		if i%5 == 0 {
			if _, err := engine.Retract(app, id, phi.Text("wrong patient"), sender, now); err != nil {
				t.Fatal(err)
			}
		}
		status := []string{"", "pending", "failed", "transmitted", "transmitted"}[random.IntN(5)]
		if _, err := app.DB().Update(collections.Observations, dbx.Params{"fhir_status": status}, dbx.HashExp{"id": id}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	agree := func(when string) {
		t.Helper()
		some := 0
		for _, from := range []time.Time{{}, midnight, midnight.Add(time.Microsecond), midnight.AddDate(0, 0, 1), midnight.Add(-5 * time.Hour)} {
			for _, to := range []time.Time{{}, midnight.AddDate(0, 0, 1), midnight.AddDate(0, 0, 1).Add(-time.Microsecond), midnight.AddDate(0, 0, 2).Add(-time.Microsecond)} {
				for _, kind := range []string{"", string(vitals.Weight), string(vitals.BloodPressure)} {
					for _, status := range []string{"", "transmitted", "pending"} {
						for _, patient := range []string{"", patients[0]} {
							f := collections.ObservationFilter{PatientID: patient, Kind: kind, FHIRStatus: status, From: from, To: to, Zone: newYork}
							page, total, err := ingest.ListObservations(app, f, 0, 200)
							if err != nil {
								t.Fatal(err)
							}
							if total != len(page) {
								t.Errorf("%s: %+v: %d in all, %d are there", when, f, total, len(page))
							}
							some += total
						}
					}
				}
			}
		}
		if some < 1000 {
			t.Errorf("%s: only %d were counted", when, some)
		}
	}
	agree("everybody")
	retracted := dbx.Params{"deleted_at": collections.FormatInstant(now)}
	if _, err := app.DB().Update(collections.Patients, retracted, dbx.HashExp{"id": patients[2]}).Execute(); err != nil {
		t.Fatal(err)
	}
	agree("one deleted")

	// A retraction after a change of the practice's zone keeps the total.
	elsewhere := ingest.NewReadingStore(ingest.Rules{PracticeZone: time.FixedZone("far", 14*60*60), MaxFuture: rules.MaxFuture})
	lone := storeReading(t, app, engine, gatewaySubmission(patients[0], at(weight(55), midnight.AddDate(0, 0, -20).Add(20*time.Hour)))).Observation.ID
	if _, err := elsewhere.Retract(app, lone, phi.Text("wrong"), sender, now); err != nil {
		t.Fatal(err)
	}
	if page, total, err := ingest.ListObservations(app, collections.ObservationFilter{}, 0, 200); total != len(page) || err != nil {
		t.Errorf("after a change of zone %d in all, %d are there (%v)", total, len(page), err)
	}
}

func TestListAndFind(t *testing.T) {
	app, engine := newApp(t, rules)
	ada, bob := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	store := func(patient string, r vitals.Reading) string {
		return storeReading(t, app, engine, gatewaySubmission(patient, r)).Observation.ID
	}
	first := store(ada, at(bloodPressure(120, 80), now.Add(-2*time.Hour)))
	second := store(bob, at(weight(80), now.Add(-time.Hour)))
	third := store(ada, at(weight(70), now))
	if _, err := app.DB().Update(collections.Observations, dbx.Params{"fhir_status": "failed"}, dbx.HashExp{"id": third}).Execute(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		filter collections.ObservationFilter
		want   []string
	}{
		{"newest first", collections.ObservationFilter{}, []string{third, second, first}},
		{"oldest first", collections.ObservationFilter{OldestFirst: true}, []string{first, second, third}},
		{"patient", collections.ObservationFilter{PatientID: ada}, []string{third, first}},
		{"kind and status", collections.ObservationFilter{Kind: "weight", FHIRStatus: "pending"}, []string{second}},
		{"both ends belong to it", collections.ObservationFilter{From: now.Add(-2 * time.Hour), To: now.Add(-time.Hour)}, []string{second, first}},
	} {
		page, total, err := ingest.ListObservations(app, test.filter, 0, 10)
		var got []string
		for _, o := range page {
			got = append(got, o.ID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || total != len(got) || err != nil {
			t.Errorf("%s: %d in all (%v) %s", test.name, total, err, diff)
		}
	}
	stored, err := ingest.NewReadingStore(ingest.Rules{}).LoadFHIR(app, first)
	if err != nil || *stored.Reading.Value(vitals.Systolic) != 120 || stored.PatientID != ada || stored.Version != 1 {
		t.Errorf("%v (%v)", stored, err)
	}
	if _, err := ingest.FindObservation(app, "0194c5a8-0000-7000-8000-00000000dead"); err == nil || err.Error() != fault.Missing().Error() {
		t.Errorf("%v", err)
	}
}
