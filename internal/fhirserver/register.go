package fhirserver

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// byNumber are the orders of what is walked by its id alone, because when it changed is not in one place.
var byNumber = []Order{{"_id", false, collections.ByID}, {"_id", true, collections.ByID}}

// devices are the measuring devices of the register.
var devices = &Kind{
	Type: "Device", May: authz.ReadDevices, Event: audit.PatientRead, Audited: audit.ResourceDevice,
	Params: []Param{
		ofPatient("patient", definitions+"Device-patient"),
		{Name: "identifier", Type: "token", Definition: definitions + "Device-identifier", add: byDeviceID},
		{Name: "type", Type: "token", Definition: definitions + "Device-type", add: byDeviceType},
	},
	Orders: byNumber, ofPatients: true, shared: true, table: collections.DeviceSearch, render: renderDevices,
}

// identifierSystem is that of what the gateway calls a device.
const identifierSystem = "urn:rpm:device"

func byDeviceID(s *Search, _ *reading, v values) string {
	return s.identifiedBy(v, numbering{identifierSystem, s.Kind.table.AnyOf, collections.ByDeviceID})
}

func byDeviceType(s *Search, _ *reading, v values) string {
	s.narrow(s.Kind.table.AnyOf(collections.ByType, kindsLike(v, func(t token, d *vitals.Definition) bool {
		return d.FHIR.Device.Code != "" && t.is("http://snomed.info/sct", d.FHIR.Device.Code)
	})))
	return ""
}

// idsOf are the ids of some records, in their order.
func idsOf(records []*core.Record) []string {
	ids := make([]string, len(records))
	for i, record := range records {
		ids[i] = record.Id
	}
	return ids
}

func renderDevices(_ *Engine, app core.App, records []*core.Record, _ Reader) ([]Row, error) {
	ids := idsOf(records)
	told, err := collections.DeviceUpdateTimes(app, ids)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(records))
	for i, record := range records {
		d := collections.AsDevice(record)
		rows[i] = Row{ID: d.Id, PatientID: d.PatientID(), Resource: fhir.DeviceResource(fhir.RegisteredDevice{
			Device: fhir.Device{Manufacturer: d.Manufacturer(), Model: d.Model(), SerialNumber: d.SerialNumber(), UDI: d.UDI()},
			ID:     d.Id, DeviceID: d.DeviceID(), Kind: vitals.Kind(d.Kind()), Firmware: d.Firmware(), PatientID: d.PatientID(),
			InUse:     slices.Contains([]string{collections.DeviceAssigned, collections.DeviceConnected, collections.DeviceDisconnected}, d.Status()),
			UpdatedAt: collections.ParseInstant(told[d.Id]),
		})}
	}
	return rows, nil
}

// practitioners are the people of the practice, who have left ones too, who are not active.
var practitioners = &Kind{
	Type: "Practitioner", May: authz.ReadPractitioners, Profiles: []string{"us-core-practitioner"},
	Params: []Param{
		{Name: "identifier", Type: "token", Definition: definitions + "Practitioner-identifier", add: byStaffNumber},
		{Name: "name", Type: "string", Definition: definitions + "Practitioner-name", Modifiers: []string{"exact", "contains"}, add: byColleague},
	},
	Orders: walks, table: collections.StaffSearch, number: true, render: renderPractitioners,
}

func byStaffNumber(s *Search, _ *reading, v values) string {
	ours := func(by string, numbers []string) dbx.Expression {
		return s.Kind.table.AnyOf(by, s.Kind.recordIDs(numbers))
	}
	return s.identifiedBy(v,
		numbering{"http://hl7.org/fhir/sid/us-npi", s.Kind.table.AnyOf, collections.ByNPI}, numbering{"urn:rpm:user", ours, collections.ByID})
}

// byColleague looks through the names of the practice's people, who are few.
func byColleague(s *Search, _ *reading, v values) string {
	s.colleagues = append(s.colleagues, v)
	return ""
}

// team finds the practice's people by their names.
func (s *Search) team(_ *Engine, app core.App) ([]string, error) {
	users, err := collections.UserList(app, collections.UserFilter{})
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, u := range users {
		called := patients.FoldName(u.LastName(), u.FirstName())
		if !slices.ContainsFunc(s.colleagues, func(v values) bool { return !calledAny(called, u.FirstName(), u.LastName(), v) }) {
			ids = append(ids, u.Id)
		}
	}
	return ids, nil
}

func calledAny(called patients.FoldedName, given, family string, v values) bool {
	return slices.ContainsFunc(v.any, func(text string) bool {
		switch v.modifier {
		case "exact":
			return text == given || text == family || text == given+" "+family
		case "contains":
			return called.AnyMatches(patients.NewNamePattern(text, patients.MatchAnywhere))
		}
		return called.AnyMatches(patients.NewNamePattern(text, patients.MatchStart))
	})
}

func renderPractitioners(_ *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		u := collections.AsUser(record)
		id := strconv.FormatInt(u.Number(), 10)
		rows[i] = Row{ID: id, Resource: fhir.Practitioner(fhir.Person{
			ID: id, First: phi.Text(u.FirstName()), Last: phi.Text(cmp.Or(u.LastName(), u.FirstName())), NPI: u.NPI(), Active: u.Active(), UpdatedAt: u.UpdatedAt(),
		})}
		rows[i].Unreadable = collections.Readable(record) != nil
	}
	return rows, nil
}

// careTeams are who looks after each patient who is looked after by somebody.
var careTeams = &Kind{
	Type: "CareTeam", May: authz.ReadCareTeam, Event: audit.PatientRead, Audited: audit.ResourceCareTeam, Profiles: []string{"us-core-careteam"},
	Params: []Param{
		ofPatient("patient", definitions+"clinical-patient"),
		ofPatient("subject", definitions+"CareTeam-subject"),
		{Name: "status", Type: "token", Definition: definitions + "CareTeam-status", add: byTeamState},
	},
	Orders: byNumber, ofPatients: true, table: collections.TeamSearch, render: renderTeams,
}

// teamStates are those of FHIR; ours are all active.
var teamStates = []code{{"proposed", nil}, {"active", nil}, {"suspended", nil}, {"inactive", nil}, {"entered-in-error", nil}}

func byTeamState(s *Search, _ *reading, v values) string {
	const system = "http://hl7.org/fhir/care-team-status"
	active := false
	for _, t := range v.tokens() {
		if (t.any || t.system == system) && !slices.ContainsFunc(teamStates, func(c code) bool { return t.is(system, c.code) }) {
			return "Must be one of: " + codes(teamStates) + "."
		}
		active = active || t.is(system, "active")
	}
	if !active {
		s.narrow(s.Kind.table.AnyOf(collections.ByID, nil))
	}
	return ""
}

func renderTeams(_ *Engine, app core.App, records []*core.Record, _ Reader) ([]Row, error) {
	ids := idsOf(records)
	told, err := collections.CareTeamUpdateTimes(app, ids)
	if err != nil {
		return nil, err
	}
	members, err := collections.CareTeamMemberships(app, ids)
	if err != nil {
		return nil, err
	}
	userIDs := []string{}
	for _, m := range members {
		userIDs = append(userIDs, m.User)
	}
	names, err := collections.UserNames(app, userIDs)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(records))
	for i, record := range records {
		p := collections.AsPatient(record)
		team := fhir.Team{PatientID: p.Id, UpdatedAt: p.UpdatedAt()}
		if at := collections.ParseInstant(told[p.Id]); at.After(team.UpdatedAt) {
			team.UpdatedAt = at
		}
		for _, m := range members {
			if m.Patient != p.Id {
				continue
			}
			name := names[m.User]
			team.Members = append(team.Members, fhir.Member{
				ID:   strconv.FormatInt(collections.Number(m.User), 10),
				Name: phi.Text(strings.TrimSpace(name.First.Reveal() + " " + name.Last.Reveal())), Role: cmp.Or(m.Role, "member"),
			})
		}
		rows[i] = Row{ID: p.Id, PatientID: p.Id, Resource: fhir.CareTeam(team)}
	}
	return rows, nil
}
