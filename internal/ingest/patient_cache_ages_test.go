package ingest_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The cache is invalidated when a patient gets a template, comes of age, or is found to be a minor.
func TestWriterCacheMatchesAges(t *testing.T) {
	app, engine := newApp(t, rules)
	w := startWriter(t, app, engine)
	tomorrow := now.AddDate(0, 0, 2)
	youth := dbx.Params{"date_of_birth": now.AddDate(-18, 0, 1).UTC().Format(time.DateOnly)}
	var people []string
	for _, columns := range []dbx.Params{nil, youth, youth, nil} {
		people = append(people, vigiltest.Patient(t, app, columns))
	}
	look := func(at time.Time) error {
		_, _, err := patients.UpdateAgeGroups(t.Context(), app, at, time.UTC)
		return err
	}
	random := rand.New(rand.NewPCG(11, 11))
	nurse := audit.Actor{Type: audit.ByUser, ID: "1", Email: "nurse@vigil.test", Role: "nurse"}
	minors, given := 0, 0
	others := []func(patient string) error{
		func(patient string) error {
			given++
			_, err := templates.Apply(app, patient, templates.ApplyRequest{Number: 1 + random.Int64N(6)}, nurse, now)
			return err
		},
		func(string) error { return look(tomorrow) }, // on the birthday
		func(string) error { // as after a correction of the date of birth
			for _, patient := range people[1:3] {
				if err := collections.SetAgeGroup(app, patient, collections.AgeUnknown); err != nil {
					return err
				}
			}
			return look(now)
		},
	}
	readings := vigiltest.Rounds(200, 80)
	for i := range readings {
		patient := people[random.IntN(len(people))]
		if _, err := w.Submit(t.Context(), gatewaySubmission(patient, anyReading(random, now.Add(time.Duration(i-200)*time.Minute)))); err != nil {
			t.Fatal(err)
		}
		if random.IntN(3) == 0 {
			if err := others[random.IntN(len(others))](people[random.IntN(len(people))]); err != nil {
				t.Fatal(err)
			}
		}
		if _, differences, err := w.VerifyCache(app, now); err != nil || differences != "" {
			t.Fatalf("after %d readings: %v\n%s", i+1, err, differences)
		}
		if group, err := collections.AgeGroupOf(app, people[1]); err != nil {
			t.Fatal(err)
		} else if group == collections.AgeMinor {
			minors++
		}
	}
	if minors < readings/10 || minors > readings*9/10 || given < 5 {
		t.Errorf("a minor for %d readings, %d templates given: what was tried?", minors, given)
	}
}
