package fhir_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	observationID = "0192f0c1-2a3b-7c4d-8e5f-60718293a4b5"
	patientID     = "5f2c9a1e-7b64-4c1d-9a3e-2d8f0b6c4e71"
	patientName   = "Ada Lovelace"
	externalID    = "Patient/a-1234"
)

var measuredAt = time.Date(2026, 3, 8, 1, 30, 0, 0, time.FixedZone("EST", -5*3600))

// stored returns a stored observation of a reading and sets its time of measurement.
func stored(r vitals.Reading) fhir.StoredObservation {
	r.MeasuredAt = measuredAt
	return fhir.StoredObservation{
		ID: observationID, PatientID: patientID, Reading: r, Version: 1,
		CreatedAt: measuredAt.Add(42*time.Second + 250*time.Millisecond),
		UpdatedAt: measuredAt.Add(time.Minute + 123456*time.Microsecond),
	}
}

func glucose(mgPerDL float64, meal, comparator string) vitals.Reading {
	return vitals.Reading{Kind: vitals.BloodGlucose}.With(vitals.GlucoseMgDL, mgPerDL).WithQualifier(vitals.MealContext, meal).WithQualifier(vitals.Comparator, comparator)
}

// cases returns the resources of the golden files by name, in served and delivered form.
func cases() map[string]fhir.Resource {
	withdrawn := stored(vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 81.65))
	withdrawn.EnteredInError, withdrawn.Version = true, 3
	broken := stored(vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.Pulse, 61.0))
	broken.DeviceError = true
	unread := stored(vitals.Reading{Kind: vitals.BloodPressure}.With(vitals.Diastolic, 76.0).With(vitals.Pulse, 70.5))
	unread.DeviceError = true
	full := stored(vitals.Reading{Kind: vitals.BloodPressure, DeviceID: "BPM-00042"}.With(vitals.Systolic, 124.0).With(vitals.Diastolic, 81.5).With(vitals.Pulse, 71.49).WithQualifier(vitals.IrregularHeartbeat, vitals.Yes))
	weight := stored(vitals.Reading{Kind: vitals.Weight, DeviceID: "SCALE-7", OriginalValue: new(160.0), OriginalUnit: "lbs"}.With(vitals.WeightKg, 72.57))
	oximetry := stored(vitals.Reading{Kind: vitals.PulseOximetry, DeviceID: "OX-1"}.With(vitals.SpO2, 97.25).With(vitals.Pulse, 64.0).With(vitals.PerfusionIndex, 3.2))
	high := stored(glucose(600, "after_meal", ">"))
	got := map[string]fhir.Resource{
		"blood_pressure_full":      fhir.Observation(full, patientName),
		"blood_pressure_delivered": fhir.DeliveredObservation(full, externalID),
		"blood_pressure_minimal":   fhir.Observation(stored(vitals.Reading{Kind: vitals.BloodPressure}.With(vitals.Systolic, 118.0).With(vitals.Diastolic, 76.0)), ""),
		"blood_pressure_absent":    fhir.Observation(stored(vitals.Reading{Kind: vitals.BloodPressure}.With(vitals.Systolic, 118.0)), patientName),
		"weight_full":              fhir.Observation(weight, patientName),
		"weight_delivered":         fhir.DeliveredObservation(weight, "a-1234"),
		"weight_minimal":           fhir.Observation(stored(vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 80.0)), patientName),
		"weight_entered_in_error":  fhir.Observation(withdrawn, patientName),
		// A reading that is retracted before its delivery is delivered as retracted.
		"weight_entered_in_error_delivered": fhir.DeliveredObservation(withdrawn, externalID),
		"glucose_delivered":                 fhir.DeliveredObservation(stored(glucose(112.5, "before_meal", "")), externalID),
		"blood_pressure_error":              fhir.Observation(unread, patientName),
		"weight_absent":                     fhir.Observation(stored(vitals.Reading{Kind: vitals.Weight}), patientName),
		"pulse_oximetry_full":               fhir.Observation(oximetry, patientName),
		"pulse_oximetry_delivered":          fhir.DeliveredObservation(oximetry, externalID),
		"pulse_oximetry_minimal":            fhir.Observation(stored(vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 98.0)), patientName),
		"pulse_oximetry_error":              fhir.Observation(broken, patientName),
		"glucose_minimal":                   fhir.Observation(stored(glucose(101, "", "")), patientName),
		"glucose_high":                      fhir.Observation(high, patientName),
		"glucose_high_delivered":            fhir.DeliveredObservation(high, externalID),
		"glucose_low":                       fhir.Observation(stored(glucose(20, "", "<")), patientName),
		"glucose_absent":                    fhir.Observation(stored(vitals.Reading{Kind: vitals.BloodGlucose}.WithQualifier(vitals.MealContext, "fasting").WithQualifier(vitals.Comparator, ">")), patientName),
	}
	warm := stored(vitals.Reading{Kind: vitals.BodyTemperature, DeviceID: "TH-3", OriginalValue: new(100.5), OriginalUnit: "°F"}.With(vitals.TemperatureC, 38.06))
	got["body_temperature_full"], got["body_temperature_delivered"] = fhir.Observation(warm, patientName), fhir.DeliveredObservation(warm, externalID)
	got["body_temperature_absent"] = fhir.Observation(stored(vitals.Reading{Kind: vitals.BodyTemperature}), patientName)
	maps.Copy(got, originCases())
	maps.Copy(got, interpretedCases())
	for _, meal := range []string{"fasting", "before_meal", "after_meal", "bedtime", "random"} {
		got["glucose_"+meal] = fhir.Observation(stored(glucose(112.5, meal, "")), patientName)
	}
	return got
}

// interpretedCases are readings with the bounds by which they were evaluated.
func interpretedCases() map[string]fhir.Resource {
	all := vitals.Limits{CriticalLow: new(80.0), Low: new(90.0), High: new(140.0), Critical: new(180.0)}
	pressure := stored(vitals.Reading{Kind: vitals.BloodPressure, DeviceID: "BPM-1"}.With(vitals.Systolic, 140.0).With(vitals.Diastolic, 61.0).With(vitals.Pulse, 131.0))
	pressure.Bounds = map[string]vitals.Limits{
		"systolic": all, "diastolic": {Low: new(60.0), High: new(90.0)}, "pulse": {CriticalLow: new(40.0), Critical: new(130.0)},
	}
	oxygen := stored(vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 88.0).With(vitals.Pulse, 50.0))
	oxygen.Bounds = map[string]vitals.Limits{"spo2": {CriticalLow: new(88.0), Low: new(92.0)}, "pulse": {Low: new(50.0), High: new(110.0)}}
	sweet := stored(glucose(600, "fasting", ">"))
	sweet.Bounds = map[string]vitals.Limits{"glucose": {High: new(250.0)}}
	return map[string]fhir.Resource{
		"interpreted_blood_pressure": fhir.Observation(pressure, patientName), "interpreted_blood_pressure_delivered": fhir.DeliveredObservation(pressure, externalID),
		"interpreted_pulse_oximetry": fhir.Observation(oxygen, patientName), "interpreted_glucose": fhir.DeliveredObservation(sweet, externalID),
		"interpreted_heart_rate": fhir.DeliveredHeartRate(pressure, externalID),
	}
}

func TestGolden(t *testing.T) {
	for name, resource := range cases() {
		t.Run(name, func(t *testing.T) {
			encoded, err := resource.Encode()
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, encoded, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			path := filepath.Join("testdata", name+".golden.json")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs:\n%s", path, got.String())
			}
		})
	}
}

func TestEveryGoldenBelongsToACase(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	known := cases()
	for _, file := range files {
		if _, ok := known[strings.TrimSuffix(filepath.Base(file), ".golden.json")]; !ok {
			t.Errorf("%s belongs to no case", file)
		}
	}
}

// decode returns the resource as plain JSON values.
func decode(t *testing.T, resource fhir.Resource) map[string]any {
	t.Helper()
	encoded, err := resource.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(encoded, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDeliveredHasNoNameOrLocalIDs(t *testing.T) {
	for name, resource := range cases() {
		if !strings.HasSuffix(name, "_delivered") {
			continue
		}
		root := decode(t, resource)
		if _, has := root["id"]; has {
			t.Errorf("%s has an id", name)
		}
		meta := root["meta"].(map[string]any)
		if delete(meta, "tag"); len(meta) != 1 || meta["profile"] == nil {
			t.Errorf("%s: meta = %v, want the profile and the reporter tag", name, meta)
		}
		subject := root["subject"].(map[string]any)
		if len(subject) != 1 || subject["reference"] != "Patient/a-1234" {
			t.Errorf("%s: subject = %v", name, subject)
		}
		encoded, _ := resource.Encode()
		if bytes.Contains(encoded, []byte(patientID)) || bytes.Contains(encoded, []byte("Lovelace")) {
			t.Errorf("%s contains Vigil's patient id", name)
		}
	}
}

func TestRounding(t *testing.T) {
	for _, test := range []struct {
		reading vitals.Reading
		want    string
	}{
		{vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 72.57), "72.57"},
		{vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 72.5), "72.5"},
		{vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 72.0), "72"},
		{vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 0.1+0.2), "0.3"},
		{vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 81.005), "81.01"},
		{vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 97.15), "97.2"},
		{vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 97.14), "97.1"},
		{vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 99.95), "100"},
		{glucose(112.5, "", ""), "113"},
		{glucose(112.49, "", ""), "112"},
		{glucose(301, "", ""), "301"},
	} {
		encoded, err := fhir.Observation(stored(test.reading), patientName).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if want := `"valueQuantity":{"value":` + test.want + `,`; !bytes.Contains(encoded, []byte(want)) {
			t.Errorf("%s not in %s", want, encoded)
		}
	}
}

func TestUnknownKindFails(t *testing.T) {
	for _, resource := range []fhir.Resource{
		fhir.Observation(stored(vitals.Reading{Kind: "mood"}), patientName),
		fhir.DeliveredObservation(stored(vitals.Reading{Kind: "mood"}), externalID),
	} {
		if _, err := resource.Encode(); err == nil || !strings.Contains(err.Error(), "mood") {
			t.Errorf("err = %v", err)
		}
		if _, err := json.Marshal(resource); err == nil {
			t.Error("an observation of an unknown kind was encoded")
		}
	}
}

func TestResourceRefusesToPrint(t *testing.T) {
	resource := fhir.Observation(stored(glucose(101, "fasting", "")), patientName)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("sent", "resource", resource)
	_, logged, _ := strings.Cut(log.String(), "level") // the digits of the log time may equal the reading's
	printed := fmt.Sprintf("%v %+v %#v %s %d %v", resource, resource, resource, resource, resource, &resource) + logged
	for _, secret := range []string{"Lovelace", "101", patientID} {
		if strings.Contains(printed, secret) {
			t.Errorf("%q was printed: %s", secret, printed)
		}
	}
}

func TestMarshalJSONEqualsEncode(t *testing.T) {
	resource := cases()["glucose_low"]
	marshalled, err := json.Marshal(resource)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := resource.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(marshalled, &a) != nil || json.Unmarshal(encoded, &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%s\n%s", marshalled, encoded)
	}
	if !bytes.Contains(encoded, []byte(`"comparator":"<"`)) {
		t.Errorf("the comparator is escaped: %s", encoded)
	}
}

func ExampleDeliveredObservation() {
	pressure := vitals.Reading{Kind: vitals.Weight, MeasuredAt: measuredAt}.With(vitals.WeightKg, 72.57)
	encoded, err := fhir.DeliveredObservation(fhir.StoredObservation{ID: observationID, Reading: pressure, CreatedAt: measuredAt}, "a-1234").Encode()
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(encoded[:88]))
	// Output: {"resourceType":"Observation","meta":{"profile":["http://hl7.org/fhir/us/core/StructureD
}

func BenchmarkDeliveredObservation(b *testing.B) {
	s := stored(vitals.Reading{Kind: vitals.BloodPressure, DeviceID: "BPM-00042"}.With(vitals.Systolic, 124.0).With(vitals.Diastolic, 81.0).With(vitals.Pulse, 71.0))
	for b.Loop() {
		if _, err := fhir.DeliveredObservation(s, externalID).Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
