package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// TeamMember is a member of a care team.
type TeamMember struct {
	ID   string // id of the Practitioner
	Name phi.Text
	Role string // text shown to people
}

// Team holds the care team of a patient.
type Team struct {
	PatientID string
	Members   []TeamMember
	UpdatedAt time.Time
}

type participant struct {
	Role   []concept `json:"role"`
	Member reference `json:"member"`
}

type careTeam struct {
	ResourceType string        `json:"resourceType"`
	ID           string        `json:"id"`
	Meta         meta          `json:"meta"`
	Status       string        `json:"status"`
	Name         string        `json:"name"`
	Subject      reference     `json:"subject"`
	Participant  []participant `json:"participant,omitempty"`
}

// CareTeam returns a patient's care team. It has the patient's id, since a patient has one team.
func CareTeam(t Team) Resource {
	r := careTeam{
		ResourceType: "CareTeam", ID: t.PatientID, Meta: meta{Profile: []string{profilePrefix + "us-core-careteam"}},
		Status: "active", Name: "Care team", Subject: reference{Reference: "Patient/" + t.PatientID},
	}
	for _, m := range t.Members {
		r.Participant = append(r.Participant, participant{
			Role: []concept{{Text: m.Role}}, Member: reference{Reference: "Practitioner/" + m.ID, Display: m.Name.Reveal()},
		})
	}
	return withVersion(&r, &r.Meta, t.UpdatedAt)
}
