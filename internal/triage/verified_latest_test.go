package triage_test

import (
	"encoding/json/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// In any order of readings and origins, the latest value is the newest, and the resolving one the newest of those that may resolve.
func TestLatestByOrigin(t *testing.T) {
	parameters := []*vitals.Parameter{vitals.Systolic, vitals.Pulse, vitals.SpO2, vitals.WeightKg}
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			reading vitals.Reading
			origin  vitals.Origin
		}
		var all []one
		for i, minute := range rapid.SliceOfNDistinct(rapid.IntRange(0, 1000), 1, 10, rapid.ID[int]).Draw(t, "minutes") {
			value := 60 + float64(i)
			r := rapid.SampledFrom([]vitals.Reading{
				pressure(value, 50), pressureAndPulse(value, 50, value), oximetry(value), oximetry(value).With(vitals.Pulse, value), weighing(value),
			}).Draw(t, "reading")
			r.MeasuredAt = now.Add(time.Duration(minute) * time.Minute)
			all = append(all, one{r, vitals.Origin(rapid.SampledFrom(append(vitals.Origins[:len(vitals.Origins):len(vitals.Origins)], "", "patient")).Draw(t, "origin"))})
		}
		with := func(list []one) (latest triage.Latest) {
			for _, o := range list {
				latest = latest.With(o.reading, o.origin)
			}
			return latest
		}
		latest := with(all)
		if other := with(rapid.Permutation(all).Draw(t, "order")); !reflect.DeepEqual(latest, other) {
			t.Fatalf("in another order it is %v instead of %v", other, latest)
		}
		stored, err := json.Marshal(latest)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := triage.ParseLatest(string(stored)); err != nil || !reflect.DeepEqual(latest, read) {
			t.Fatalf("%s is read as %v (%v)", stored, read, err)
		}
		for _, p := range parameters {
			for _, raised := range []vitals.Origin{"", vitals.OriginDevice, vitals.OriginPatient} {
				var want *float64
				var at time.Time
				for _, o := range all {
					if value := o.reading.Value(p); value != nil && o.origin.CanResolve(raised) && o.reading.MeasuredAt.After(at) {
						want, at = value, o.reading.MeasuredAt
					}
				}
				got, measured := latest.ResolvingValue(p, raised)
				if (want == nil) != (got == nil) || want != nil && (*want != *got || !at.Equal(measured)) {
					t.Fatalf("%s that resolves %q: %v of %s, want %v of %s", p.Name, raised, got, measured, want, at)
				}
			}
		}
	})
}

// A typed value is shown, and for a day does not take the patient out of the band of handled criticals caused by a device or staff.
func TestTypedNormalKeepsCriticalBand(t *testing.T) {
	ago := func(r vitals.Reading, age time.Duration) vitals.Reading { r.MeasuredAt = now.Add(-age); return r }
	critical := ago(oximetry(70), 2*time.Hour)
	const device, staff, typed = vitals.OriginDevice, vitals.OriginStaff, vitals.OriginPatient
	type one struct {
		reading vitals.Reading
		origin  vitals.Origin
	}
	for name, test := range map[string]struct {
		readings []one
		score    int // with nothing open, reviewed now
	}{
		"the critical alone":                 {[]one{{critical, device}}, 83},
		"typed after a device":               {[]one{{critical, device}, {ago(oximetry(97), time.Hour), typed}}, 83},
		"typed after staff, twice":           {[]one{{critical, staff}, {ago(oximetry(97), time.Hour), typed}, {ago(oximetry(98), 0), typed}}, 83},
		"typed after what was typed":         {[]one{{critical, typed}, {ago(oximetry(97), time.Hour), typed}}, 1},
		"staff after it":                     {[]one{{critical, device}, {ago(oximetry(97), time.Hour), typed}, {ago(oximetry(96), 0), staff}}, 1},
		"staff between":                      {[]one{{critical, device}, {ago(oximetry(96), time.Hour), staff}, {ago(oximetry(97), 0), typed}}, 1},
		"staff between, last to come":        {[]one{{critical, device}, {ago(oximetry(97), 0), typed}, {ago(oximetry(96), time.Hour), staff}}, 1},
		"the critical, last to come":         {[]one{{ago(oximetry(97), time.Hour), typed}, {critical, device}}, 83},
		"worse, typed":                       {[]one{{critical, device}, {ago(oximetry(50), 2*time.Hour), typed}}, 85},
		"of a day":                           {[]one{{ago(oximetry(70), day), device}, {ago(oximetry(97), time.Hour), typed}}, 80},
		"of more than a day":                 {[]one{{ago(oximetry(70), day+time.Second), device}, {ago(oximetry(97), time.Hour), typed}}, 1},
		"a pulse, with an oximeter's":        {[]one{{ago(oximetry(97).With(vitals.Pulse, 190), time.Hour), device}, {ago(pressureAndPulse(120, 80, 70), 0), typed}}, 82},
		"a gain, typed after":                {[]one{{ago(weighing(87), 2*time.Hour), device}, {ago(weighing(80), time.Hour), typed}}, 79},
		"a warning of a device, typed after": {[]one{{ago(oximetry(91), 2*time.Hour), device}, {ago(oximetry(97), time.Hour), typed}}, 1},
	} {
		snapshot := triage.PatientSnapshot{Thresholds: defaults, LastReviewedAt: now, Baseline: []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 80, MeasuredAt: now.Add(-2 * day)}}}
		for _, o := range test.readings {
			snapshot.Latest = snapshot.Latest.With(o.reading, o.origin)
		}
		place := snapshot.ComputeRow(now)
		if place.Score.Value != test.score {
			t.Errorf("%s: %d, want %d: %v", name, place.Score.Value, test.score, place.Score.Factors)
		}
	}
}

// A value that only the patient typed is evaluated; a more severe verified one of the same type counts instead.
func TestCurrentFinding(t *testing.T) {
	at := func(r vitals.Reading, age time.Duration) vitals.Reading { r.MeasuredAt = now.Add(-age); return r }
	const device, typed = vitals.OriginDevice, vitals.OriginPatient
	for name, test := range map[string]struct {
		device, typed float64      // SpO2; 0 for none
		want          alerts.Level // "" in range
		age           time.Duration
	}{
		"nothing":                     {0, 0, "", 0},
		"a device":                    {85, 0, alerts.Critical, 2 * time.Hour},
		"typed only":                  {0, 85, alerts.Critical, time.Hour},
		"typed only, in range":        {0, 97, "", time.Hour},
		"a device is more severe":     {85, 97, alerts.Critical, 2 * time.Hour},
		"what was typed is as severe": {85, 84, alerts.Critical, time.Hour},
	} {
		snapshot := triage.PatientSnapshot{Thresholds: defaults}
		if test.device != 0 {
			snapshot.Latest = snapshot.Latest.With(at(oximetry(test.device), 2*time.Hour), device)
		}
		if test.typed != 0 {
			snapshot.Latest = snapshot.Latest.With(at(oximetry(test.typed), time.Hour), typed)
		}
		finding, measured, found := snapshot.CurrentFinding(string(vitals.PulseOximetry))
		if found != (test.device+test.typed > 0) || found && (finding.Level != test.want || !measured.Equal(now.Add(-test.age))) {
			t.Errorf("%s: %q of %s (%t)", name, finding.Level, measured, found)
		}
	}
}
