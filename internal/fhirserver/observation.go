package fhirserver

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	loinc            = "http://loinc.org"
	ucum             = "http://unitsofmeasure.org"
	categories       = "http://terminology.hl7.org/CodeSystem/observation-category"
	observationState = "http://hl7.org/fhir/observation-status"
)

// observed are the readings.
var observed = &Kind{
	Type: "Observation", May: authz.ReadObservations, Event: audit.ObservationRead, Audited: audit.ResourceObservation, Vast: true,
	Profiles: profilesOfReadings(),
	Params: []Param{
		ofPatient("patient", definitions+"clinical-patient"),
		ofPatient("subject", definitions+"Observation-subject"),
		{Name: "category", Type: "token", Definition: definitions + "Observation-category", add: byCategory},
		{Name: "code", Type: "token", Definition: definitions + "clinical-code", add: byCode},
		moment("date", definitions+"clinical-date", collections.ByMeasured),
		holding(coded("status", definitions+"Observation-status", collections.ByStatus, observationState, []code{
			{"registered", nil},
			{"preliminary", []string{collections.StatusSuspect}},
			{"final", []string{collections.StatusFinal}},
			{"amended", nil},
			{"corrected", nil},
			{"cancelled", nil},
			{"entered-in-error", []string{collections.StatusEnteredInError}},
			{"unknown", nil},
		})),
		{Name: "component-code-value-quantity", Type: "composite", Definition: definitions + "Observation-component-code-value-quantity", add: byComponent},
	},
	Orders: []Order{
		{"date", true, collections.ByMeasured},
		{"date", false, collections.ByMeasured},
		{"_lastUpdated", false, collections.ByUpdated},
		{"_lastUpdated", true, collections.ByUpdated},
		{"_id", false, collections.ByID},
		{"_id", true, collections.ByID},
	},
	Includes: []string{"Observation:subject", "Observation:device"}, Joins: []string{"Provenance:target"},
	ofPatients: true, table: collections.ReadingSearch, render: renderReadings,
}

// holding finds the few that do not hold by their own index.
func holding(p Param) Param {
	add := p.add
	p.add = func(s *Search, in *reading, v values) string {
		if !slices.ContainsFunc(v.tokens(), func(t token) bool { return t.is(observationState, "final") }) {
			s.narrow(collections.NotFinal())
		}
		return add(s, in, v)
	}
	return p
}

func profilesOfReadings() (names []string) {
	for _, d := range vitals.Definitions {
		if !slices.Contains(names, d.FHIR.Profile) {
			names = append(names, d.FHIR.Profile)
		}
	}
	return names
}

func byCategory(s *Search, _ *reading, v values) string {
	s.ofKinds(kindsLike(v, func(t token, d *vitals.Definition) bool {
		return t.is(categories, "vital-signs") || d.FHIR.Laboratory && t.is(categories, "laboratory")
	}))
	return ""
}

func byCode(s *Search, _ *reading, v values) string {
	s.ofKinds(kindsLike(v, func(t token, d *vitals.Definition) bool {
		return slices.ContainsFunc(d.FHIR.Codes, func(c vitals.Code) bool { return t.is(loinc, c.Code) })
	}))
	return ""
}

const (
	msgComponent = "Must be a code, a dollar sign and a number with a prefix if need be, such as 8480-6$gt140."
	msgUnit      = "The unit is not that of the component; it is not converted."
)

// byComponent keeps readings of which one component has a value. The values are not indexed, so a patient or a time has to be named, too.
func byComponent(s *Search, _ *reading, v values) string {
	var either []dbx.Expression
	for _, text := range v.any {
		asked, value, parted := strings.Cut(text, "$")
		pieces := strings.Split(value, "|")
		bounds, ok := number(pieces[0])
		if !parted || !ok || len(pieces) != 1 && len(pieces) != 3 {
			return msgComponent
		}
		t := parseToken(asked)
		for _, p := range vitals.Parameters {
			if p.FHIR == nil || !t.is(loinc, p.FHIR.Code.Code) {
				continue
			}
			if len(pieces) == 3 && !unitIs(p.FHIR, pieces[1], pieces[2]) {
				return msgUnit
			}
			if kinds := withComponent(p); len(kinds) > 0 {
				either = append(either, s.Kind.table.ValueIn(kinds, p.Column, p.FHIR.Decimals, bounds))
			}
		}
	}
	if len(either) == 0 {
		either = append(either, s.Kind.table.AnyOf(collections.ByKind, nil)) // nothing measures that
	}
	s.either(either)
	s.needs = append(s.needs, need{"component-code-value-quantity", "Ask for a patient or a date as well: this looks at every reading."})
	return ""
}

// withComponent are the kinds that have a parameter as a component, not as the value itself.
func withComponent(p *vitals.Parameter) (kinds []string) {
	for _, d := range vitals.Definitions {
		if d.FHIR.Value != p && slices.Contains(d.All, p) {
			kinds = append(kinds, string(d.Kind))
		}
	}
	return kinds
}

func unitIs(q *vitals.Quantity, system, unit string) bool {
	if system != "" {
		return system == ucum && unit == q.UCUM
	}
	return unit == q.UCUM || unit == q.Unit
}

// places is what a page of readings is shown with: where its patients are, and its devices.
type places struct {
	zones   map[string]*time.Location
	devices map[string]string
}

func (e *Engine) placesOf(app core.App, readings []ingest.Observation) (c places, err error) {
	var patientIDs, deviceIDs []string
	for _, o := range readings {
		if !slices.Contains(patientIDs, o.PatientID) {
			patientIDs = append(patientIDs, o.PatientID)
		}
		if id := o.Reading.DeviceID; id != "" && !slices.Contains(deviceIDs, id) {
			deviceIDs = append(deviceIDs, id)
		}
	}
	zones, err := collections.PatientTimeZones(app, patientIDs)
	if err != nil {
		return c, err
	}
	c.zones = make(map[string]*time.Location, len(zones))
	for id, name := range zones {
		c.zones[id] = collections.Zone(name, e.Zone)
	}
	c.devices, err = collections.DeviceRecordIDs(app, deviceIDs)
	return c, err
}

func renderReadings(e *Engine, app core.App, records []*core.Record, _ Reader) ([]Row, error) {
	readings := readingsOf(records)
	c, err := e.placesOf(app, readings)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(readings))
	for i, o := range readings {
		stored := o.FHIR()
		stored.Zone = c.zones[o.PatientID]
		device := c.deviceOf(o)
		rows[i] = Row{ID: o.ID, PatientID: o.PatientID, DeviceID: device, Resource: fhir.Linked(stored, device)}
	}
	return rows, nil
}

// deviceOf is the id of the Device that measured; "" where a person typed the values, or where nobody knows it.
func (c places) deviceOf(o ingest.Observation) string {
	if o.Origin == vitals.OriginStaff || o.Origin == vitals.OriginPatient {
		return ""
	}
	return c.devices[o.Reading.DeviceID]
}

func readingsOf(records []*core.Record) []ingest.Observation {
	readings := make([]ingest.Observation, len(records))
	for i, record := range records {
		readings[i] = ingest.ObservationFromRecord(record)
	}
	return readings
}
