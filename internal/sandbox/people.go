package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Password is that of every made-up account. They only ever exist on a machine of somebody who tries Vigil out.
const Password = "Vigil-Demo-2026!"

// Colleague is a made-up person with an account.
type Colleague struct {
	Role                       authz.Role
	Email, FirstName, LastName string
}

// Colleagues is one person for each role, in the contract's order.
var Colleagues = []Colleague{
	{authz.Admin, "admin@vigil.example", "Alex", "Morgan"},
	{authz.ClinicalManager, "manager@vigil.example", "Maria", "Lindqvist"},
	{authz.Provider, "provider@vigil.example", "Priya", "Raman"},
	{authz.Nurse, "nurse@vigil.example", "Noah", "Okafor"},
	{authz.MA, "ma@vigil.example", "Mina", "Castillo"},
	{authz.DataMonitor, "billing@vigil.example", "Dana", "Whitfield"},
	{authz.Patient, "patient@vigil.example", "Grace", "Hall"},
}

var (
	givenNames = []string{
		"Grace", "James", "Olivia", "Robert", "Elena", "William", "Aisha", "Thomas", "Hannah", "Luis",
		"Margaret", "Samuel", "Chloe", "Henry", "Yuki", "Walter", "Beatriz", "George", "Ingrid", "Kwame",
	}
	familyNames = []string{
		"Hall", "Nguyen", "Fischer", "Johnson", "Petrov", "O’Neill", "Haddad", "Brooks", "Moreau", "Silva", "Tanaka", "Carter",
		"Novak", "Reyes", "Andersen", "Mbeki", "Costa", "Walsh", "Kim",
	}
	genders = []string{"female", "male", "female", "male", "female", "male", "female", "male", "female", "male"}
	towns   = []struct{ city, state, zip string }{{"Albany", "NY", "12207"}, {"Burlington", "VT", "05401"}, {"Hartford", "CT", "06103"}, {"Concord", "NH", "03301"}}
)

// Neighbour is the nth made-up patient, counted from 1: the same number is always the same person.
type Neighbour struct {
	FirstName, LastName, BirthDate, Gender string
	Phone, Email                           string
	Line1, City, State, Zip                string
	GatewayID, EMRID                       string
}

// NewNeighbour makes the nth patient.
func NewNeighbour(n int) Neighbour {
	i := n - 1
	town := towns[i%len(towns)]
	first, last := givenNames[i%len(givenNames)], familyNames[i%len(familyNames)]
	born := time.Date(1938+(i*7)%45, time.Month(1+(i*5)%12), 1+(i*11)%28, 0, 0, 0, 0, time.UTC)
	return Neighbour{
		FirstName: first, LastName: last, BirthDate: born.Format(time.DateOnly), Gender: genders[i%len(genders)],
		Phone: fmt.Sprintf("518-555-%04d", 100+n), Email: fmt.Sprintf("patient%d@mail.example", n),
		Line1: fmt.Sprintf("%d Maple Street", 10+n), City: town.city, State: town.state, Zip: town.zip,
		GatewayID: GatewayPatientID(n), EMRID: fmt.Sprintf("demo-%04d", n),
	}
}

// EMRPatient is the neighbour as the EMR sandbox knows them.
func (p Neighbour) EMRPatient() EMRPatient {
	return EMRPatient{
		ID: p.EMRID, MRN: "EMR-" + p.EMRID, Family: p.LastName, Given: []string{p.FirstName}, Gender: p.Gender, BirthDate: p.BirthDate,
		Phone: p.Phone, Email: p.Email, Line: []string{p.Line1}, City: p.City, State: p.State, PostalCode: p.Zip,
	}
}

// GatewayPatientID is the gateway's id of the nth simulated patient, counted from 1.
func GatewayPatientID(n int) string { return fmt.Sprintf("GW-%04d", n) }

// HubID is the id of the cellular hub in the nth simulated patient's home.
func HubID(n int) string { return fmt.Sprintf("HUB-%04d", n) }

// DeviceID is the id of the nth simulated patient's device of a kind.
func DeviceID(n int, kind vitals.Kind) string {
	return fmt.Sprintf("DEV-%04d-%s", n, makeOf(kind).suffix)
}

// hardware is what the devices of a kind are called; every second household has the other model.
type hardware struct {
	suffix string
	models [2]string
	// foreign says which households have one that measures in another unit.
	foreign func(number int) bool
}

// makes are the devices with a name of their own.
var makes = map[vitals.Kind]hardware{
	vitals.BloodPressure: {"BP", [2]string{"BP-7", "BP-9 Connect"}, nil},
	vitals.Weight:        {"WT", [2]string{"Scale C2", "Scale C3"}, func(number int) bool { return number%2 == 1 }},
	vitals.PulseOximetry: {"OX", [2]string{"Oxi 1", "Oxi 2"}, nil},
	vitals.BloodGlucose:  {"BG", [2]string{"Gluco G4", "Gluco G5"}, func(number int) bool { return number%3 == 0 }},
}

// makeOf gives those of other kinds the initials of the kind.
func makeOf(kind vitals.Kind) hardware {
	if known, ok := makes[kind]; ok {
		return known
	}
	initials := ""
	for word := range strings.FieldsSeq(kind.Title()) {
		initials += strings.ToUpper(word[:1])
	}
	return hardware{initials, [2]string{initials + "-1", initials + "-2"}, func(number int) bool { return number%3 == 0 }}
}

// SimulatedPatient is a patient as the gateway knows one: ids and devices, no name.
type SimulatedPatient struct {
	// Number chooses body and habits: the same number and seed give the same person.
	Number    int
	GatewayID string
	HubID     string
	Devices   []SimulatedDevice
}

// SimulatedDevice is one device in a patient's home.
type SimulatedDevice struct {
	ID    string
	Kind  vitals.Kind
	Model string
}

// SimulatedPatients makes patients 1 to count, each with a device of every kind given (all kinds when none is).
func SimulatedPatients(count int, kinds ...vitals.Kind) []SimulatedPatient {
	if len(kinds) == 0 {
		kinds = vitals.Kinds
	}
	patients := make([]SimulatedPatient, 0, max(count, 0))
	for n := 1; n <= count; n++ {
		patient := SimulatedPatient{Number: n, GatewayID: GatewayPatientID(n), HubID: HubID(n)}
		for _, kind := range kinds {
			patient.Devices = append(patient.Devices, SimulatedDevice{
				ID: DeviceID(n, kind), Kind: kind, Model: makeOf(kind).models[n%2],
			})
		}
		patients = append(patients, patient)
	}
	return patients
}

// historyGap keeps the history clear of the events a simulator sends from now on.
const historyGap = 10 * time.Minute

// History is what a patient's devices measured on the given number of local days up to and including today, oldest
// first, ending ten minutes before now. The zone of now is the patient's: it decides what a day is and when it is
// morning. Missed days are missing. The same seed continues without a break in a Simulator.
func History(patient SimulatedPatient, days int, seed uint64, now time.Time) []vitals.Reading {
	p := newWearer(seed, patient.Number)
	until := now.Add(-historyGap)
	var readings []vitals.Reading
	for back := days - 1; back >= 0; back-- {
		noon := time.Date(now.Year(), now.Month(), now.Day()-back, 12, 0, 0, 0, now.Location())
		if !p.measuresOn(noon) {
			continue
		}
		for _, device := range patient.Devices {
			for _, at := range p.schedule(noon, device.Kind) {
				if !at.After(until) {
					readings = append(readings, p.reading(device.Kind, device.ID, at))
				}
			}
		}
	}
	slices.SortStableFunc(readings, func(a, b vitals.Reading) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	return readings
}

// schedule is when the patient measures on a day: every morning, and on some evenings all but what is watched for changes.
func (p wearer) schedule(noon time.Time, kind vitals.Kind) []time.Time {
	// Four streams a day, as there were four kinds: another kind must not change the history of those.
	luck := p.dice(topicSchedule, dayNumber(noon)*4+int64(kind.Definition().Place-1))
	clock := func(sinceMidnight time.Duration) time.Time {
		return time.Date(noon.Year(), noon.Month(), noon.Day(), 0, 0, int(sinceMidnight/time.Second), 0, noon.Location())
	}
	jitter := time.Duration(luck.IntN(40*60)) * time.Second
	times := []time.Time{clock(p.morning + jitter)}
	if kind.Definition().Main().Change == nil && luck.Float64() < 0.4 {
		times = append(times, clock(p.morning+12*time.Hour+2*jitter))
	}
	return times
}
