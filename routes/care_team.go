package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/routes/web"
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

func (a *api) readCareTeam(c *web.Call, patient *collections.Patient) error {
	team, err := patients.FindCareTeam(c.App, patient)
	if err != nil {
		return err
	}
	return c.Answer(viewCareTeam(team), c.RecordRead(audit.PatientRead, audit.ResourceCareTeam, patient.Id, patient.Id))
}

func (a *api) updateCareTeam(c *web.Call, patient *collections.Patient) error {
	draft, err := web.Read(c, patients.CareTeamBody.Read)
	if err != nil {
		return err
	}
	return web.Show(c.OK, viewCareTeam)(patients.SetCareTeam(c.App, patient.Id, draft, c.Actor(), c.Now))
}
