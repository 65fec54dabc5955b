package fhirserver

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
)

// careTeamType is the care teams: one for each patient with at least one member.
var careTeamType = &ResourceType{
	Type: "CareTeam", Action: authz.ReadCareTeam, Event: audit.PatientRead, AuditResource: audit.ResourceCareTeam, Profiles: []string{"us-core-careteam"},
	Params: []Param{
		patientParam("patient", definitions+"clinical-patient"),
		patientParam("subject", definitions+"CareTeam-subject"),
		codeParamWith("status", definitions+"CareTeam-status", "http://hl7.org/fhir/care-team-status", careTeamStatuses, filterByTeamStatus),
	},
	Orders: idOrders, ofPatients: true, table: collections.TeamSearch, render: renderCareTeams,
}

// careTeamStatuses are the statuses of FHIR; all stored care teams are active.
var careTeamStatuses = []code{{"proposed", nil}, {"active", []string{"active"}}, {"suspended", nil}, {"inactive", nil}, {"entered-in-error", nil}}

// filterByTeamStatus makes a search match no team unless it accepts active ones.
func filterByTeamStatus(s *Search, accepted []string) {
	if len(accepted) == 0 {
		s.addCondition(s.Type.table.AnyOf(collections.ByID, nil))
	}
}

func renderCareTeams(_ *Engine, app core.App, records []*core.Record, _ Reader) ([]Row, error) {
	ids := idsOf(records)
	updateTimes, err := collections.CareTeamUpdateTimes(app, ids)
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
		if at := collections.ParseInstant(updateTimes[p.Id]); at.After(team.UpdatedAt) {
			team.UpdatedAt = at
		}
		for _, m := range members {
			if m.Patient != p.Id {
				continue
			}
			name := names[m.User]
			team.Members = append(team.Members, fhir.TeamMember{
				ID:   strconv.FormatInt(collections.Number(m.User), 10),
				Name: phi.Text(strings.TrimSpace(name.First.Reveal() + " " + name.Last.Reveal())), Role: cmp.Or(m.Role, "member"),
			})
		}
		rows[i] = Row{ID: p.Id, PatientID: p.Id, Resource: fhir.CareTeam(team)}
	}
	return rows, nil
}
