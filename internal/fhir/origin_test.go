package fhir_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func zone(t testing.TB, name string) *time.Location {
	loaded, err := time.LoadLocation(name)
	if err != nil && t != nil {
		t.Fatal(err)
	}
	return loaded
}

// originCases returns golden files of origins, devices, time zones and additional resources.
func originCases() map[string]fhir.Resource {
	measured := stored(vitals.Reading{Kind: vitals.BloodPressure, DeviceID: "BPM-00042"}.With(vitals.Systolic, 124.0).With(vitals.Diastolic, 81.0).With(vitals.Pulse, 71.0))
	measured.Origin, measured.Zone = vitals.OriginDevice, zone(nil, "America/New_York")
	measured.Device = &fhir.Device{Manufacturer: "Example Medical", Model: "BP-7", SerialNumber: "4711", UDI: "(01)00844588003288(17)271120(21)4711"}
	bare := measured
	bare.Device = &fhir.Device{}
	staff, portal, updated, corrected := measured, measured, measured, measured
	staff.Origin, portal.Origin = vitals.OriginStaff, vitals.OriginPatient
	updated.EMRID, corrected.EMRID, corrected.EnteredInError = "obs-7", "obs-7", true
	mean := fhir.MeanBloodPressure{
		ID: observationID, PatientID: patientID, Readings: 14, Systolic: 131.3, Diastolic: 80.9, CreatedAt: measuredAt,
		From: time.Date(2026, 3, 2, 0, 0, 0, 0, zone(nil, "America/New_York")), To: time.Date(2026, 3, 9, 0, 0, 0, 0, zone(nil, "America/New_York")),
	}
	gone := mean
	gone.Readings, gone.Systolic, gone.Diastolic, gone.EMRID = 0, 0, 0, "obs-9"
	got := map[string]fhir.Resource{
		"origin_device":               fhir.Observation(measured, patientName),
		"origin_device_delivered":     fhir.DeliveredObservation(measured, externalID),
		"origin_device_unknown":       fhir.DeliveredObservation(bare, externalID),
		"origin_staff":                fhir.Observation(staff, patientName),
		"origin_patient":              fhir.Observation(portal, patientName),
		"origin_patient_delivered":    fhir.DeliveredObservation(portal, externalID),
		"update_amended":              fhir.DeliveredObservation(updated, externalID),
		"update_entered_in_error":     fhir.DeliveredObservation(corrected, externalID),
		"heart_rate":                  fhir.DeliveredHeartRate(measured, externalID),
		"heart_rate_patient":          fhir.DeliveredHeartRate(portal, externalID),
		"heart_rate_entered_in_error": fhir.DeliveredHeartRate(corrected, externalID),
		"mean_blood_pressure":         fhir.DeliveredMeanBloodPressure(mean, externalID),
		"mean_blood_pressure_gone":    fhir.DeliveredMeanBloodPressure(gone, externalID),
	}
	for name, reading := range map[string]vitals.Reading{
		"weight":           vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 72.5),
		"pulse_oximetry":   vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 97.0),
		"blood_glucose":    glucose(104, "", ""),
		"body_temperature": vitals.Reading{Kind: vitals.BodyTemperature}.With(vitals.TemperatureC, 36.8),
	} {
		reading.DeviceID = "D-1"
		s := stored(reading)
		s.Origin, s.Device = vitals.OriginMachine, &fhir.Device{Model: "M"}
		got["origin_machine_"+name] = fhir.DeliveredObservation(s, externalID)
	}
	return got
}

// The effective time has the UTC offset of the patient's zone: before and after both clock changes, with whole and half-hour offsets, and with fractions
// of a second.
func TestEffectiveTimeHasPatientOffset(t *testing.T) {
	for _, test := range []struct{ zone, at, want string }{
		{"America/New_York", "2026-03-08T06:59:59Z", "2026-03-08T01:59:59-05:00"},
		{"America/New_York", "2026-03-08T07:00:00Z", "2026-03-08T03:00:00-04:00"},
		{"America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T01:30:00-04:00"},
		{"America/New_York", "2026-11-01T06:30:00Z", "2026-11-01T01:30:00-05:00"},
		{"Australia/Lord_Howe", "2026-04-04T14:59:00Z", "2026-04-05T01:59:00+11:00"},
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z", "2026-04-05T01:30:00+10:30"},
		{"Europe/Berlin", "2026-03-29T01:00:00.25Z", "2026-03-29T03:00:00.250+02:00"},
		{"UTC", "2026-03-29T01:00:00.000001Z", "2026-03-29T01:00:00.000001Z"},
	} {
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		s := stored(vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 80))
		s.Reading.MeasuredAt, s.Zone = at, zone(t, test.zone)
		for name, resource := range map[string]fhir.Resource{"served": fhir.Observation(s, ""), "delivered": fhir.DeliveredObservation(s, "1")} {
			if got := decode(t, resource)["effectiveDateTime"]; got != test.want {
				t.Errorf("%s in %s, %s: %v, want %s", test.at, test.zone, name, got, test.want)
			}
		}
	}
}

// Only device-measured readings have a Device resource; readings that a person entered have only the device's name.
func TestOnlyMeasuredReadingsHaveDevice(t *testing.T) {
	for origin, want := range map[vitals.Origin]string{
		vitals.OriginDevice: "DEVRPT", vitals.OriginMachine: "DEVRPT", vitals.OriginImport: "DEVRPT", vitals.OriginStaff: "HCPRPT", vitals.OriginPatient: "PATRPT",
	} {
		s := stored(vitals.Reading{Kind: vitals.Weight, DeviceID: "SCALE-7"}.With(vitals.WeightKg, 80))
		s.Origin, s.Device = origin, &fhir.Device{SerialNumber: "1"}
		root := decode(t, fhir.DeliveredObservation(s, "1"))
		device := root["device"].(map[string]any)
		typed := origin == vitals.OriginStaff || origin == vitals.OriginPatient
		if device["display"] != "SCALE-7" || typed != (root["contained"] == nil) || typed != (device["reference"] == nil) || typed != (device["identifier"] == nil) {
			t.Errorf("%s: %v, contained %v", origin, device, root["contained"])
		}
		if tag := first(root["meta"].(map[string]any), "tag"); tag["code"] != want {
			t.Errorf("%s: tag %v", origin, tag)
		}
		performer := first(root, "performer")
		if origin == vitals.OriginStaff && performer["display"] != "Staff" || origin != vitals.OriginStaff && performer["reference"] != "Patient/1" {
			t.Errorf("%s: performer %v", origin, root["performer"])
		}
	}
}

// Only a GS1 UDI has a parsed device identifier.
func TestDeviceIdentifier(t *testing.T) {
	for udi, want := range map[string]any{
		"(01)00844588003288(17)271120": "00844588003288", "(01)0084458800328": nil, "(01)0084458800328X": nil,
		"+H123PARTNO1234567890120/$$420020216LOT": nil, "00844588003288": nil,
	} {
		s := stored(vitals.Reading{Kind: vitals.Weight, DeviceID: "S"}.With(vitals.WeightKg, 80))
		s.Device = &fhir.Device{UDI: udi}
		carrier := first(first(decode(t, fhir.DeliveredObservation(s, "1")), "contained"), "udiCarrier")
		if carrier["deviceIdentifier"] != want || carrier["carrierHRF"] != udi {
			t.Errorf("%s: %v", udi, carrier)
		}
	}
}

// An additional resource of a reading has its own constant identifier.
func TestPartID(t *testing.T) {
	id := fhir.PartID(observationID, fhir.HeartRatePart)
	if id != fhir.PartID(strings.ToUpper(observationID), fhir.HeartRatePart) || id == fhir.PartID(observationID, "x") || id == fhir.PartID(patientID, fhir.HeartRatePart) {
		t.Errorf("different parts have the same id: %s", id)
	}
	if _, err := fhir.DeliveredHeartRate(stored(vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, 80)), "1").Encode(); err == nil {
		t.Error("a weight has a heart rate")
	}
}
