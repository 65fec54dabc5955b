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

// people are the patients, archived ones too, who are not active.
var people = &Kind{
	Type: "Patient", May: authz.ReadFHIRPatients, Event: audit.PatientRead, Audited: audit.ResourcePatient, Profiles: []string{"us-core-patient"},
	Params: []Param{
		{Name: "identifier", Type: "token", Definition: definitions + "Patient-identifier", add: byIdentifier},
		named("name", definitions+"Patient-name", patients.FoldedName.AnyMatches, func(family, given string) []string {
			return []string{family, given, given + " " + family}
		}),
		named("family", definitions+"individual-family", patients.FoldedName.FamilyMatches, func(family, _ string) []string { return []string{family} }),
		named("given", definitions+"individual-given", patients.FoldedName.GivenMatches, func(_, given string) []string { return []string{given} }),
		{Name: "birthdate", Type: "date", Definition: definitions + "individual-birthdate", add: byBirth},
		coded("gender", definitions+"individual-gender", collections.ByGender, "http://hl7.org/fhir/administrative-gender", []code{
			{"male", []string{"male"}}, {"female", []string{"female"}}, {"other", []string{"other"}}, {"unknown", []string{"unknown"}},
		}),
	},
	Orders: walks, Joins: []string{"Provenance:target"}, ofPatients: true, table: collections.PatientSearch, render: renderPatients,
}

// walks are the orders of what has none of its own.
var walks = []Order{
	{"_id", false, collections.ByID}, {"_id", true, collections.ByID}, {"_lastUpdated", false, collections.ByUpdated}, {"_lastUpdated", true, collections.ByUpdated},
}

// byIdentifier finds patients by the numbers that are theirs alone: ours and the EMR's.
func byIdentifier(s *Search, in *reading, v values) string {
	systems, table := in.engine.Systems, s.Kind.table
	s.identified = true
	return s.identifiedBy(v,
		numbering{systems.MRN, table.FoldedAnyOf, collections.ByMRN}, numbering{systems.EMRID, table.AnyOf, collections.ByExternalID})
}

// named is a parameter of a name. Names are sealed, so they are looked for in memory.
func named(name, definition string, is func(patients.FoldedName, patients.NamePattern) bool, parts func(family, given string) []string) Param {
	return Param{Name: name, Type: "string", Definition: definition, Modifiers: []string{"exact", "contains"}, add: func(s *Search, _ *reading, v values) string {
		how := map[string]patients.MatchMode{"exact": patients.MatchWhole, "contains": patients.MatchAnywhere}[v.modifier]
		sought := make([]patients.NamePattern, len(v.any))
		for i, text := range v.any {
			sought[i] = patients.NewNamePattern(text, how)
		}
		s.named = append(s.named, func(c patients.FoldedName) bool {
			return slices.ContainsFunc(sought, func(one patients.NamePattern) bool { return is(c, one) })
		})
		if v.modifier == "exact" {
			s.exact = append(s.exact, func(family, given string) bool {
				return slices.ContainsFunc(parts(family, given), func(part string) bool { return slices.Contains(v.any, part) })
			})
		}
		return ""
	}}
}

func byBirth(s *Search, in *reading, v values) string {
	days := make([]collections.TimeRange, len(v.any))
	for i, text := range v.any {
		var ok bool
		if days[i], ok = day(text, in.now); !ok || strings.Contains(text, "T") {
			return "Must be a date as FHIR writes it: a year, a month or a day, after a prefix if need be."
		}
	}
	s.born = append(s.born, days)
	return ""
}

// people finds the patients by what is sealed: names in memory, dates of birth by opening those that are left.
func (s *Search) people(e *Engine, app core.App) ([]string, error) {
	var ids []string // nil for all
	if s.named != nil {
		ids = e.Directory.IDsByName(func(c patients.FoldedName) bool {
			return !slices.ContainsFunc(s.named, func(is func(patients.FoldedName) bool) bool { return !is(c) })
		})
	}
	if s.born == nil && s.exact == nil {
		return ids, nil
	}
	found := []string{}
	err := collections.EachPatientIdentity(app, ids, func(id, family, given, birth string) {
		at, err := time.Parse(time.DateOnly, birth)
		born := !slices.ContainsFunc(s.born, func(days []collections.TimeRange) bool {
			return err != nil || !slices.ContainsFunc(days, func(d collections.TimeRange) bool { return holds(d, at) })
		})
		if born && !slices.ContainsFunc(s.exact, func(is func(family, given string) bool) bool { return !is(family, given) }) {
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

// StoredPatient is all that the FHIR form of a patient depends on.
func StoredPatient(p *collections.Patient) fhir.StoredPatient {
	return fhir.StoredPatient{
		ID: p.Id, Who: p.Demographics(), Gender: p.Gender(), MRN: p.MRN(), ExternalID: p.ExternalID(),
		Active: p.Active(), Version: p.Version(), UpdatedAt: p.UpdatedAt(),
	}
}
