package sandbox

import (
	"fmt"
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// GatewayPatientID returns the gateway's id of the nth simulated patient, counted from 1.
func GatewayPatientID(n int) string { return fmt.Sprintf("GW-%04d", n) }

// HubID returns the id of the cellular hub of the nth simulated patient.
func HubID(n int) string { return fmt.Sprintf("HUB-%04d", n) }

// DeviceID returns the id of the nth simulated patient's device of a kind.
func DeviceID(n int, kind vitals.Kind) string {
	return fmt.Sprintf("DEV-%04d-%s", n, modelsOf(kind).suffix)
}

// deviceModel names the devices of a kind; every second patient has the other model.
type deviceModel struct {
	suffix string
	models [2]string
	// usesOtherUnit reports which patients have a device that measures in another unit.
	usesOtherUnit func(number int) bool
}

// deviceModels are the devices with names.
var deviceModels = map[vitals.Kind]deviceModel{
	vitals.BloodPressure: {"BP", [2]string{"BP-7", "BP-9 Connect"}, nil},
	vitals.Weight:        {"WT", [2]string{"Scale C2", "Scale C3"}, func(number int) bool { return number%2 == 1 }},
	vitals.PulseOximetry: {"OX", [2]string{"Oxi 1", "Oxi 2"}, nil},
	vitals.BloodGlucose:  {"BG", [2]string{"Gluco G4", "Gluco G5"}, func(number int) bool { return number%3 == 0 }},
}

// modelsOf returns the devices of a kind, named by its initials if it has none.
func modelsOf(kind vitals.Kind) deviceModel {
	if model, ok := deviceModels[kind]; ok {
		return model
	}
	initials := ""
	for word := range strings.FieldsSeq(kind.Title()) {
		initials += strings.ToUpper(word[:1])
	}
	return deviceModel{initials, [2]string{initials + "-1", initials + "-2"}, func(number int) bool { return number%3 == 0 }}
}

// SimulatedPatient is a patient in the gateway: ids and devices, no name.
type SimulatedPatient struct {
	// Number determines body and habits: the same number and seed give the same person.
	Number    int
	GatewayID string
	HubID     string
	Devices   []SimulatedDevice
}

// SimulatedDevice is one device of a patient.
type SimulatedDevice struct {
	ID    string
	Kind  vitals.Kind
	Model string
}

// SimulatedPatients returns patients 1 to count, each with a device of every given kind (all kinds if none is given).
func SimulatedPatients(count int, kinds ...vitals.Kind) []SimulatedPatient {
	if len(kinds) == 0 {
		kinds = vitals.Kinds
	}
	patients := make([]SimulatedPatient, 0, max(count, 0))
	for n := 1; n <= count; n++ {
		patient := SimulatedPatient{Number: n, GatewayID: GatewayPatientID(n), HubID: HubID(n)}
		for _, kind := range kinds {
			patient.Devices = append(patient.Devices, SimulatedDevice{
				ID: DeviceID(n, kind), Kind: kind, Model: modelsOf(kind).models[n%2],
			})
		}
		patients = append(patients, patient)
	}
	return patients
}

// homeDevices returns a patient's devices: a cuff, for every second one a scale, for every fifth an oximeter and a glucose meter.
func homeDevices(n int) SimulatedPatient {
	kinds := []vitals.Kind{vitals.BloodPressure}
	if n%2 == 0 {
		kinds = append(kinds, vitals.Weight)
	}
	if n%5 == 0 {
		kinds = append(kinds, vitals.PulseOximetry, vitals.BloodGlucose)
	}
	all := SimulatedPatients(n, kinds...)
	return all[n-1]
}

// SimulatedHouseholds returns the devices of all patients, for the simulator.
func SimulatedHouseholds(count int) (households []SimulatedPatient) {
	for n := 1; n <= count; n++ {
		households = append(households, homeDevices(n))
	}
	return households
}
