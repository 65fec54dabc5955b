package patients

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// PractitionerBody is a practitioner of another practice.
type PractitionerBody struct {
	NPI       validate.String `json:"npi"`
	FirstName validate.String `json:"first_name"`
	LastName  validate.String `json:"last_name"`
}

// practitioner reads a practitioner; nil for none. Source: ASC X12N 005010X222A1 (837P), 2310A and 2420E.
func practitioner(c *validate.Checks, name string, f validate.Field[PractitionerBody]) *phi.Practitioner {
	body, ok := validate.Nested(c, name, f, msgObject)
	if !ok {
		return nil
	}
	p := &phi.Practitioner{
		NPI:       c.Text(name+".npi", body.NPI, validate.Required(10).Identifier()),
		FirstName: c.Text(name+".first_name", body.FirstName, validate.Required(35)), LastName: c.Text(name+".last_name", body.LastName, validate.Required(60)),
	}
	if p.NPI != "" && !validate.ValidNPI(p.NPI) {
		c.Reject(name+".npi", "Must be a National Provider Identifier: ten digits with a valid check digit.")
	}
	return p
}

// PractitionerView is a practitioner of another practice.
type PractitionerView struct {
	NPI       string `json:"npi"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

// Format reveals nothing.
func (PractitionerView) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[practitioner]") }

// LogValue reveals nothing.
func (PractitionerView) LogValue() slog.Value { return slog.StringValue("[practitioner]") }

// ViewPractitioner returns the view of a practitioner; nil for none.
func ViewPractitioner(p *phi.Practitioner) *PractitionerView {
	if p == nil {
		return nil
	}
	return &PractitionerView{p.NPI, p.FirstName, p.LastName}
}
