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
	loinc                   = "http://loinc.org"
	ucum                    = "http://unitsofmeasure.org"
	categorySystem          = "http://terminology.hl7.org/CodeSystem/observation-category"
	observationStatusSystem = "http://hl7.org/fhir/observation-status"
)

// observationType is the stored readings.
var observationType = &ResourceType{
	Type: "Observation", Action: authz.ReadObservations, Event: audit.ObservationRead, AuditResource: audit.ResourceObservation, IsLarge: true,
	Profiles: profilesOfReadings(),
	Params: []Param{
		patientParam("patient", definitions+"clinical-patient"),
		patientParam("subject", definitions+"Observation-subject"),
		{Name: "category", Type: "token", Definition: definitions + "Observation-category", add: filterByCategory},
		{Name: "code", Type: "token", Definition: definitions + "clinical-code", add: filterByCode},
		{Name: "combo-code", Type: "token", Definition: definitions + "Observation-combo-code", add: filterByAnyCode},
		{Name: "identifier", Type: "token", Definition: definitions + "clinical-identifier", add: filterByUUID},
		timeParam("date", definitions+"clinical-date", collections.ByMeasured),
		withStatusIndex(codeParam("status", definitions+"Observation-status", collections.ByStatus, observationStatusSystem, []code{
			{"registered", nil},
			{"preliminary", []string{collections.StatusSuspect}},
			{"final", []string{collections.StatusFinal}},
			{"amended", nil},
			{"corrected", nil},
			{"cancelled", nil},
			{"entered-in-error", []string{collections.StatusEnteredInError}},
			{"unknown", nil},
		})),
		{Name: "component-code-value-quantity", Type: "composite", Definition: definitions + "Observation-component-code-value-quantity", add: filterByComponent},
	},
	Orders:   slices.Concat(newestFirst("date", collections.ByMeasured), ascendingFirst("_lastUpdated", collections.ByUpdated), ascendingFirst("_id", collections.ByID)),
	Includes: []string{"Observation:subject", "Observation:patient", "Observation:device"}, RevIncludes: []string{"Provenance:target"},
	ofPatients: true, table: collections.ReadingSearch, render: renderReadings,
}

// withStatusIndex makes a search for statuses other than final use the index of those few readings.
func withStatusIndex(p Param) Param {
	add := p.add
	p.add = func(s *Search, in *parseContext, v values) string {
		if !slices.ContainsFunc(v.tokens(), func(t token) bool { return t.is(observationStatusSystem, "final") }) {
			s.addCondition(collections.NotFinal())
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

func filterByCategory(s *Search, _ *parseContext, v values) string {
	s.filterKinds(matchingKinds(v, func(t token, d *vitals.Definition) bool {
		return t.is(categorySystem, "vital-signs") || d.FHIR.Laboratory && t.is(categorySystem, "laboratory")
	}))
	return ""
}

func filterByCode(s *Search, _ *parseContext, v values) string {
	s.filterKinds(matchingKinds(v, func(t token, d *vitals.Definition) bool {
		return slices.ContainsFunc(d.FHIR.Codes, func(c vitals.Code) bool { return t.is(loinc, c.Code) })
	}))
	return ""
}

// filterByAnyCode restricts the search to readings with a code, their own or a component's. A component that a kind need not have counts where
// it has a value. Source: FHIR R4, Observation, search parameter combo-code.
func filterByAnyCode(s *Search, _ *parseContext, v values) string {
	kinds := matchingKinds(v, func(t token, d *vitals.Definition) bool {
		return slices.ContainsFunc(d.FHIR.Codes, func(c vitals.Code) bool { return t.is(loinc, c.Code) }) ||
			slices.ContainsFunc(d.Required, func(p *vitals.Parameter) bool {
				return p != d.FHIR.Value && p.FHIR != nil && t.is(loinc, p.FHIR.Code.Code)
			})
	})
	var optional []dbx.Expression
	for _, p := range vitals.Parameters {
		isAsked := p.FHIR != nil && slices.ContainsFunc(v.tokens(), func(t token) bool { return t.is(loinc, p.FHIR.Code.Code) })
		without := slices.DeleteFunc(kindsWithComponent(p), func(kind string) bool { return slices.Contains(kinds, kind) })
		if isAsked && len(without) > 0 {
			optional = append(optional, s.Type.table.ValueIn(without, p.Column, p.FHIR.Decimals, collections.ValueRange{}))
		}
	}
	if len(optional) == 0 {
		s.filterKinds(kinds)
		return ""
	}
	s.addAnyOf(append(optional, s.Type.table.AnyOf(collections.ByKind, kinds)))
	s.costly = append(s.costly, costlyCondition{"combo-code", "Add a patient or a date: this search reads every reading."})
	return ""
}

// filterByUUID restricts the search to readings with an identifier: the urn:uuid: that delivered and served readings carry.
func filterByUUID(s *Search, _ *parseContext, v values) string {
	s.ids = s.ids || !slices.ContainsFunc(v.tokens(), func(t token) bool { return t.code == "" })
	return s.filterByIdentifiers(v, identifierSystem{"urn:ietf:rfc:3986", func(by string, numbers []string) dbx.Expression {
		ids := []string{}
		for _, number := range numbers {
			if id, ok := strings.CutPrefix(strings.ToLower(number), "urn:uuid:"); ok {
				ids = append(ids, id)
			}
		}
		return s.Type.table.AnyOf(by, ids)
	}, collections.ByID})
}

const (
	msgComponent = "Must be a code, a dollar sign and a number with an optional prefix, such as 8480-6$gt140."
	msgUnit      = "The unit is not the unit of the component, and units are not converted."
)

// filterByComponent restricts the search to readings with a component value in a range. Values are not indexed, so the search must also filter by patient
// or time.
func filterByComponent(s *Search, _ *parseContext, v values) string {
	var conditions []dbx.Expression
	for _, text := range v.any {
		component, value, hasValue := strings.Cut(text, "$")
		parts := strings.Split(value, "|")
		bounds, ok := parseNumberRange(parts[0])
		if !hasValue || !ok || len(parts) != 1 && len(parts) != 3 {
			return msgComponent
		}
		t := parseToken(component)
		if strings.TrimSpace(t.code) == "" {
			return msgComponent
		}
		for _, p := range vitals.Parameters {
			if p.FHIR == nil || !t.is(loinc, p.FHIR.Code.Code) {
				continue
			}
			if len(parts) == 3 && !matchesUnit(p.FHIR, parts[1], parts[2]) {
				return msgUnit
			}
			if kinds := kindsWithComponent(p); len(kinds) > 0 {
				conditions = append(conditions, s.Type.table.ValueIn(kinds, p.Column, p.FHIR.Decimals, bounds))
			}
		}
	}
	if len(conditions) == 0 {
		conditions = append(conditions, s.Type.table.AnyOf(collections.ByKind, nil)) // no kind of reading has the component
	}
	s.addAnyOf(conditions)
	s.costly = append(s.costly, costlyCondition{"component-code-value-quantity", "Add a patient or a date: this search reads every reading."})
	return ""
}

// kindsWithComponent returns the kinds that have a parameter as a component rather than as the value.
func kindsWithComponent(p *vitals.Parameter) (kinds []string) {
	for _, d := range vitals.Definitions {
		if d.FHIR.Value != p && slices.Contains(d.All, p) {
			kinds = append(kinds, string(d.Kind))
		}
	}
	return kinds
}

func matchesUnit(q *vitals.Quantity, system, unit string) bool {
	if system != "" {
		return system == ucum && unit == q.UCUM
	}
	return unit == q.UCUM || unit == q.Unit
}

// readingContext holds the time zones of a page's patients and the record ids of its devices.
type readingContext struct {
	zones   map[string]*time.Location
	devices map[string]string
}

func (e *Engine) loadReadingContext(app core.App, readings []ingest.Observation) (c readingContext, err error) {
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
	c, err := e.loadReadingContext(app, readings)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(readings))
	for i, o := range readings {
		stored := o.FHIR()
		stored.Zone = c.zones[o.PatientID]
		device := c.deviceOf(o)
		rows[i] = Row{ID: o.ID, PatientID: o.PatientID, DeviceID: device, Resource: fhir.LinkedObservation(stored, device)}
	}
	return rows, nil
}

// deviceOf returns the id of the measuring Device; "" if a person entered the values or the device is not registered.
func (c readingContext) deviceOf(o ingest.Observation) string {
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
