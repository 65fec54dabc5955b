package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
)

// careTeamView is who looks after a patient.
type careTeamView struct {
	PrimaryProviderID   *int64             `json:"primary_provider_id"`
	PrimaryProviderName *string            `json:"primary_provider_name"`
	Members             []careTeamItemView `json:"members"`
}

type careTeamItemView struct {
	UserID int64  `json:"user_id"`
	Role   string `json:"role"`
	Name   string `json:"name"`
}

func viewCareTeam(team patients.CareTeam) careTeamView {
	view := careTeamView{Members: []careTeamItemView{}}
	if primary := team.PrimaryProvider; primary != nil {
		view.PrimaryProviderID, view.PrimaryProviderName = &primary.UserID, orNull(primary.Name.Reveal())
	}
	for _, m := range team.Members {
		view.Members = append(view.Members, careTeamItemView{m.UserID, m.Role, m.Name.Reveal()})
	}
	return view
}

func (a *api) readCareTeam(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	team, err := patients.FindCareTeam(c.App, patient)
	if err != nil {
		return err
	}
	if err := c.recordRead(audit.PatientRead, audit.ResourceCareTeam, patient.Id, patient.Id); err != nil {
		return err
	}
	return c.ok(viewCareTeam(team))
}

func (a *api) updateCareTeam(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	var body patients.CareTeamBody
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.Read(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	team, err := patients.SetCareTeam(c.App, patient.Id, draft, c.actor(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(viewCareTeam(team))
}
