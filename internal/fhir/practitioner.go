package fhir

import (
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// StaffMember holds the fields of a staff account from which a Practitioner is built.
type StaffMember struct {
	ID        string // resource id: the number of the account
	First     phi.Text
	Last      phi.Text
	NPI       string
	Active    bool
	UpdatedAt time.Time
}

type practitioner struct {
	ResourceType string       `json:"resourceType"`
	ID           string       `json:"id"`
	Meta         meta         `json:"meta"`
	Identifier   []identifier `json:"identifier"`
	Active       bool         `json:"active"`
	Name         []humanName  `json:"name"`
}

// Practitioner returns a staff member with name and identifiers. It has no contact details, which not every reader may see.
func Practitioner(p StaffMember) Resource {
	r := practitioner{
		ResourceType: "Practitioner", ID: p.ID, Meta: meta{Profile: []string{profilePrefix + "us-core-practitioner"}},
		Active: p.Active, Name: []humanName{{Use: "usual", Family: p.Last.Reveal()}},
	}
	if p.NPI != "" {
		r.Identifier = append(r.Identifier, identifier{npiSystem, p.NPI})
	}
	r.Identifier = append(r.Identifier, identifier{userSystem, p.ID})
	if first := p.First.Reveal(); first != "" {
		r.Name[0].Given = []string{first}
	}
	return withVersion(&r, &r.Meta, p.UpdatedAt)
}
