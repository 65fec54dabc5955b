package fhirserver

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
)

// practitionerType is the staff of the practice; former staff are included as inactive.
var practitionerType = &ResourceType{
	Type: "Practitioner", Action: authz.ReadPractitioners, Profiles: []string{"us-core-practitioner"},
	Params: []Param{
		{Name: "identifier", Type: "token", Definition: definitions + "Practitioner-identifier", add: filterByStaffIdentifier},
		{Name: "name", Type: "string", Definition: definitions + "Practitioner-name", Modifiers: []string{"exact", "contains"}, add: filterByUserName},
	},
	Orders: defaultOrders, table: collections.StaffSearch, numericID: true, render: renderPractitioners,
}

func filterByStaffIdentifier(s *Search, _ *parseContext, v values) string {
	byNumber := func(by string, numbers []string) dbx.Expression {
		return s.Type.table.AnyOf(by, s.Type.recordIDs(numbers))
	}
	return s.filterByIdentifiers(v,
		identifierSystem{"http://hl7.org/fhir/sid/us-npi", s.Type.table.AnyOf, collections.ByNPI}, identifierSystem{"urn:rpm:user", byNumber, collections.ByID})
}

// filterByUserName records a name filter of accounts; userIDs applies it in memory, since a practice has few of them.
func filterByUserName(s *Search, _ *parseContext, v values) string {
	s.userNames = append(s.userNames, v)
	return ""
}

// userIDs returns the ids of the accounts with names that match every filter.
func (s *Search) userIDs(_ *Engine, app core.App) ([]string, error) {
	users, err := collections.UserList(app, collections.UserFilter{})
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, u := range users {
		name := patients.FoldName(u.LastName(), u.FirstName())
		if !slices.ContainsFunc(s.userNames, func(v values) bool { return !matchesUserName(name, u.FirstName(), u.LastName(), v) }) {
			ids = append(ids, u.Id)
		}
	}
	return ids, nil
}

func matchesUserName(name patients.FoldedName, given, family string, v values) bool {
	return slices.ContainsFunc(v.any, func(text string) bool {
		switch v.modifier {
		case "exact":
			return text == given || text == family || text == given+" "+family
		case "contains":
			return name.AnyMatches(patients.NewNamePattern(text, patients.MatchAnywhere))
		}
		return name.AnyMatches(patients.NewNamePattern(text, patients.MatchStart))
	})
}

func renderPractitioners(_ *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		u := collections.AsUser(record)
		id := strconv.FormatInt(u.Number(), 10)
		rows[i] = Row{ID: id, Resource: fhir.Practitioner(fhir.StaffMember{
			ID: id, First: phi.Text(u.FirstName()), Last: phi.Text(cmp.Or(u.LastName(), u.FirstName())), NPI: u.NPI(), Active: u.Active(), UpdatedAt: u.UpdatedAt(),
		})}
		rows[i].Unreadable = collections.Readable(record) != nil
	}
	return rows, nil
}
