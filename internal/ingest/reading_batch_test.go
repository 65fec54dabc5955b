package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var ordered = func() ingest.Rules {
	o := rules
	o.LateAfter, o.IrregularHeartbeats = 24*time.Hour, 3
	return o
}()

const alertStates = `SELECT CAST(value AS INTEGER) || ' ' || level || ' ' || status || IIF(late, ' late', '') || IIF(resolution_reason = '', '', ' ' || resolution_reason)
	FROM alerts WHERE level != 'normal' ORDER BY measured_at`

// A group is evaluated in order of measurement: a late reading is superseded by a newer one of the same group.
func TestGroupEvaluatedInOrder(t *testing.T) {
	for _, test := range []struct {
		name    string
		apart   time.Duration
		want    []string
		stats   int
		systole []float64
	}{
		{"late", 24 * time.Hour, []string{"188 critical auto_resolved late superseded"}, 0, []float64{188, 122, 124, 126}},
		{"late, and all of them bad", 25 * time.Hour, []string{
			"188 critical auto_resolved late superseded", "190 critical auto_resolved late superseded", "192 critical active",
		}, 1, []float64{188, 190, 192}},
		{"of today", time.Minute, []string{"204 critical auto_resolved"}, 1, []float64{204, 122, 124}},
		{"of today, with a breach between", time.Minute, []string{"204 critical active", "150 warning auto_resolved"}, 1, []float64{204, 122, 150, 124}},
	} {
		for shuffled := range 3 {
			app, engine := newApp(t, ordered)
			patient := vigiltest.Patient(t, app, nil)
			var list []ingest.Submission
			for i, systolic := range test.systole {
				list = append(list, gatewaySubmission(patient, at(bloodPressure(systolic, 80), now.Add(time.Duration(i+1-len(test.systole))*test.apart))))
			}
			rand.New(rand.NewPCG(18, uint64(shuffled))).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			for _, a := range first(group(t, app, engine, list)) {
				if a.err != nil {
					t.Fatal(a.err)
				}
			}
			if got := texts(t, app, alertStates); !slices.Equal(got, test.want) {
				t.Errorf("%s: %q, want %q", test.name, got, test.want)
			}
			if stats := texts(t, app, `SELECT status FROM escalations`); len(stats) != test.stats {
				t.Errorf("%s: escalations %q", test.name, stats)
			}
		}
	}
}

// A late device reading is not superseded by a newer manual reading of the group, or by one with a wrong clock.
func TestGroupSupersededByReliableOnly(t *testing.T) {
	for _, test := range []struct {
		name string
		late vitals.Origin
		next func(s *ingest.Submission)
		want string
	}{
		{"typed", "", func(s *ingest.Submission) { s.Source = vitals.SourcePortal }, "188 critical active late"},
		{"typed, by its origin", "", func(s *ingest.Submission) { s.Origin = vitals.OriginPatient }, "188 critical active late"},
		{"undated", "", func(s *ingest.Submission) { s.TimeInDoubt = true }, "188 critical active late"},
		{"undated and vouched for", "", func(s *ingest.Submission) { s.TimeInDoubt, s.ConfirmedBy = true, "nurse@vigil.test" }, "188 critical active late"},
		{"staff", "", func(s *ingest.Submission) { s.Origin = vitals.OriginStaff }, "188 critical auto_resolved late superseded"},
		{"typed, both", vitals.OriginPatient, func(s *ingest.Submission) { s.Origin = vitals.OriginPatient }, "188 critical auto_resolved late superseded"},
	} {
		app, engine := newApp(t, ordered)
		patient := vigiltest.Patient(t, app, nil)
		late := gatewaySubmission(patient, at(bloodPressure(188, 80), now.Add(-48*time.Hour)))
		late.Origin = test.late
		next := gatewaySubmission(patient, at(bloodPressure(120, 80), now.Add(-time.Hour)))
		test.next(&next)
		for _, a := range first(group(t, app, engine, []ingest.Submission{next, late})) {
			if a.err != nil {
				t.Fatal(a.err)
			}
		}
		if got := texts(t, app, alertStates); !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// If the newer reading of a group is rejected, the late one is not superseded and its alert is announced.
func TestStaleGroupIsStoredOneByOne(t *testing.T) {
	app, engine := newApp(t, ordered)
	patient, other := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	vigiltest.Assign(t, app, "BP-2", other, now.AddDate(-1, 0, 0))
	list := []ingest.Submission{
		gatewaySubmission(patient, from("BP-2", at(bloodPressure(120, 80), now.Add(-time.Hour)))),
		gatewaySubmission(patient, from("BP-1", at(bloodPressure(188, 80), now.Add(-48*time.Hour)))),
	}
	answers, _ := group(t, app, engine, list)
	if vigiltest.Code(answers[0].err) != "device_patient_mismatch" || answers[1].err != nil {
		t.Fatalf("%v, %v", answers[0].err, answers[1].err)
	}
	if got := texts(t, app, alertStates); !slices.Equal(got, []string{"188 critical active late"}) {
		t.Errorf("%q", got)
	}
	if notified := texts(t, app, `SELECT kind FROM announcements`); !slices.Equal(notified, []string{"alert_raised"}) {
		t.Errorf("announced %q", notified)
	}
}

// Readings of one day in any order of arrival give the same alerts as in order of measurement.
func TestAnyOrderGivesSameAlerts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 18))
	origins := []vitals.Origin{vitals.OriginDevice, vitals.OriginStaff, vitals.OriginPatient}
	for range vigiltest.Rounds(12, 3) {
		var readings []ingest.Submission
		for i := range 8 {
			r := at(bloodPressure([]float64{120, 122, 118, 150, 190}[random.IntN(5)]+float64(i)/10, 80), now.Add(time.Duration(i-20)*time.Minute))
			s := gatewaySubmission("", r)
			s.Origin = origins[random.IntN(len(origins))]
			readings = append(readings, s)
		}
		play := func(order []int) (string, error) {
			app, engine := newApp(t, ordered)
			patient := vigiltest.Patient(t, app, nil)
			for _, i := range order {
				s := readings[i]
				s.PatientID = patient
				if _, err := tryIngest(app, engine, s); err != nil {
					return "", err
				}
			}
			open := texts(t, app, `SELECT value || ' ' || normal_readings FROM alerts WHERE status = 'active' ORDER BY measured_at`)
			return fmt.Sprint(texts(t, app, alertStates), open), nil
		}
		want, err := play([]int{0, 1, 2, 3, 4, 5, 6, 7})
		if err != nil {
			t.Fatal(err)
		}
		order := random.Perm(len(readings))
		if got, err := play(order); err != nil || got != want {
			t.Errorf("in the order %v:\n%s, want\n%s (%v)", order, got, want, err)
		}
	}
}

// After retracting one of many readings of any kinds with bounds, the alerts of the others equal those without it.
func TestRetractionEqualsNeverStored(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 18))
	for round := range vigiltest.Rounds(24, 6) {
		kinds := 1 + round%3
		var readings []ingest.Submission
		for i := range 7 {
			tenth := float64(i) / 10
			r := []vitals.Reading{
				bloodPressure([]float64{120, 118, 150, 190}[random.IntN(4)]+tenth, 80),
				withPulse(bloodPressure(120+tenth, 80), []float64{70, 45, 120, 140}[random.IntN(4)]+tenth),
				vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, []float64{97, 96, 91, 85}[random.IntN(4)]+tenth),
			}[random.IntN(kinds)]
			s := gatewaySubmission("", at(r, now.Add(time.Duration(i-20)*time.Minute)))
			s.Origin = []vitals.Origin{vitals.OriginDevice, vitals.OriginStaff, vitals.OriginPatient, vitals.OriginPatient}[random.IntN(4)]
			readings = append(readings, s)
		}
		play := func(without int, withdraw bool) string {
			app, engine := newApp(t, ordered)
			patient := vigiltest.Patient(t, app, nil)
			id := ""
			for i, s := range readings {
				s.PatientID = patient
				switch {
				case i != without:
					storeReading(t, app, engine, s)
				case withdraw:
					id = storeReading(t, app, engine, s).Observation.ID
				}
			}
			if withdraw {
				if _, err := engine.Retract(app, id, "wrong cuff", nurse, now); err != nil {
					t.Fatal(err)
				}
			}
			return fmt.Sprint(
				texts(t, app, `SELECT value || ' ' || level || ' ' || status || ' ' || IIF(status = 'active', normal_readings, '') FROM alerts WHERE resolution_reason = '' ORDER BY measured_at`),
				texts(t, app, `SELECT priority || ' ' || status FROM escalations WHERE status != 'cancelled'`),
				texts(t, app, `SELECT risk_score || ' ' || risk_level || ' ' || unacknowledged_alerts || ' ' || latest_vitals FROM triage_scores`))
		}
		without := random.IntN(len(readings))
		if want, got := play(without, false), play(without, true); got != want {
			t.Errorf("without the %d. of %v:\n%s, want\n%s", without+1, readings, got, want)
		}
	}
}
