package fhirserver

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
)

// patientType is the patients; archived patients are included as inactive.
var patientType = &ResourceType{
	Type: "Patient", Action: authz.ReadFHIRPatients, Event: audit.PatientRead, AuditResource: audit.ResourcePatient, Profiles: []string{"us-core-patient"},
	Params: []Param{
		{Name: "identifier", Type: "token", Definition: definitions + "Patient-identifier", add: filterByIdentifier},
		nameParam("name", definitions+"Patient-name", patients.FoldedName.AnyMatches, func(family, given string) []string {
			return []string{family, given, given + " " + family}
		}),
		nameParam("family", definitions+"individual-family", patients.FoldedName.FamilyMatches, func(family, _ string) []string { return []string{family} }),
		nameParam("given", definitions+"individual-given", patients.FoldedName.GivenMatches, func(_, given string) []string { return []string{given} }),
		{Name: "birthdate", Type: "date", Definition: definitions + "individual-birthdate", add: filterByBirthdate},
		codeParam("gender", definitions+"individual-gender", collections.ByGender, "http://hl7.org/fhir/administrative-gender", []code{
			{"male", []string{"male"}}, {"female", []string{"female"}}, {"other", []string{"other"}}, {"unknown", []string{"unknown"}},
		}),
	},
	Orders: defaultOrders, ofPatients: true, table: collections.PatientSearch, render: renderPatients,
}

// defaultOrders are the sort orders of types without their own.
var defaultOrders = []Order{
	{"_id", false, collections.ByID}, {"_id", true, collections.ByID}, {"_lastUpdated", false, collections.ByUpdated}, {"_lastUpdated", true, collections.ByUpdated},
}

// filterByIdentifier searches patients by their medical record number or EMR id.
func filterByIdentifier(s *Search, in *parseContext, v values) string {
	systems, table := in.engine.Systems, s.Type.table
	s.hasIdentifier = true
	return s.filterByIdentifiers(v,
		identifierSystem{systems.MRN, table.FoldedAnyOf, collections.ByMRN}, identifierSystem{systems.EMRID, table.AnyOf, collections.ByExternalID})
}

// nameParam returns a name parameter. Names are sealed, so the search matches them in memory.
func nameParam(name, definition string, is func(patients.FoldedName, patients.NamePattern) bool, parts func(family, given string) []string) Param {
	return Param{Name: name, Type: "string", Definition: definition, Modifiers: []string{"exact", "contains"}, add: func(s *Search, _ *parseContext, v values) string {
		mode := map[string]patients.MatchMode{"exact": patients.MatchWhole, "contains": patients.MatchAnywhere}[v.modifier]
		patterns := make([]patients.NamePattern, len(v.any))
		for i, text := range v.any {
			patterns[i] = patients.NewNamePattern(text, mode)
		}
		s.nameFilters = append(s.nameFilters, func(c patients.FoldedName) bool {
			return slices.ContainsFunc(patterns, func(one patients.NamePattern) bool { return is(c, one) })
		})
		if v.modifier == "exact" {
			s.exactNames = append(s.exactNames, func(family, given string) bool {
				return slices.ContainsFunc(parts(family, given), func(part string) bool { return slices.Contains(v.any, part) })
			})
		}
		return ""
	}}
}

func filterByBirthdate(s *Search, in *parseContext, v values) string {
	days := make([]collections.TimeRange, len(v.any))
	for i, text := range v.any {
		var ok bool
		if days[i], ok = parseDayRange(text, in.now); !ok || strings.Contains(text, "T") {
			return "Must be a FHIR date: a year, a month or a day, optionally after a prefix."
		}
	}
	s.birthRanges = append(s.birthRanges, days)
	return ""
}

// patientIDs returns the ids of the patients that match the sealed fields: names in memory first, then dates of birth by opening the remaining records.
func (s *Search) patientIDs(e *Engine, app core.App) ([]string, error) {
	var ids []string // nil for all
	if s.nameFilters != nil {
		ids = e.Directory.IDsByName(func(c patients.FoldedName) bool {
			return !slices.ContainsFunc(s.nameFilters, func(is func(patients.FoldedName) bool) bool { return !is(c) })
		})
	}
	if s.birthRanges == nil && s.exactNames == nil {
		return ids, nil
	}
	found := []string{}
	err := collections.EachPatientIdentity(app, ids, func(id, family, given, birth string) {
		at, err := time.Parse(time.DateOnly, birth)
		bornInRange := !slices.ContainsFunc(s.birthRanges, func(days []collections.TimeRange) bool {
			return err != nil || !slices.ContainsFunc(days, func(d collections.TimeRange) bool { return inRange(d, at) })
		})
		if bornInRange && !slices.ContainsFunc(s.exactNames, func(is func(family, given string) bool) bool { return !is(family, given) }) {
			found = append(found, id)
		}
	})
	return found, err
}

func renderPatients(e *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		p := collections.AsPatient(record)
		rows[i] = Row{ID: p.Id, PatientID: p.Id}
		if collections.Readable(record) != nil {
			rows[i].Unreadable = true
			continue
		}
		rows[i].Resource = fhir.Patient(StoredPatient(p), e.Systems)
	}
	return rows, nil
}

// StoredPatient returns the fields from which a Patient resource is built.
func StoredPatient(p *collections.Patient) fhir.StoredPatient {
	return fhir.StoredPatient{
		ID: p.Id, Demographics: p.Demographics(), Gender: p.Gender(), MRN: p.MRN(), ExternalID: p.ExternalID(),
		Active: p.Active(), DeceasedAt: p.DeceasedAt(), Language: p.PreferredLanguage(), Version: p.Version(), UpdatedAt: p.UpdatedAt(),
	}
}
