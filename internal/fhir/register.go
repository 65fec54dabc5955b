package fhir

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The resources besides readings and patients, as the FHIR interface serves them. Source: docs/decisions/fhir.md, "Resources of the FHIR interface".

// The systems of our own identifiers and codes.
const (
	userSystem       = "urn:rpm:user"
	npiSystem        = "http://hl7.org/fhir/sid/us-npi"
	alertTypeSystem  = "urn:rpm:alert-type"
	alertLevelSystem = "urn:rpm:alert-level"
)

// versioned is a resource whose versions nobody counts: its version is told by what it says.
type versioned interface{ about() *meta }

// edition is a resource with the id of its version, which is another whenever the resource says something else.
func edition(r versioned, updatedAt time.Time) Resource {
	resource := Resource{content: r}
	said, err := resource.Encode()
	if err != nil {
		return Resource{err: err}
	}
	const length = 8 // enough to tell one edition from those before
	sum := sha256.Sum256(said)
	m := r.about()
	m.VersionID, m.LastUpdated = hex.EncodeToString(sum[:length]), validate.FormatInstant(updatedAt)
	return resource
}

// RegisteredDevice is a measuring device of the register.
type RegisteredDevice struct {
	Device

	ID       string // of the resource
	DeviceID string
	Kind     vitals.Kind // "" where that is not known
	Firmware string
	// InUse: patients measure with it, or may.
	InUse     bool
	PatientID string // who has it; "" for nobody
	UpdatedAt time.Time
}

// DeviceResource is a device of the register.
func DeviceResource(r RegisteredDevice) Resource {
	d := r.of(r.DeviceID, r.Kind)
	d.ID, d.Meta, d.Status = r.ID, &meta{}, "inactive"
	if r.InUse {
		d.Status = "active"
	}
	if r.Firmware != "" {
		d.Version = []version{{r.Firmware}}
	}
	if r.PatientID != "" {
		d.Patient = &reference{Reference: "Patient/" + r.PatientID}
	}
	return edition(&d, r.UpdatedAt)
}

func (d *device) about() *meta { return d.Meta }

// Person is somebody of the practice.
type Person struct {
	ID        string // of the resource, and the number of the account
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

func (p *practitioner) about() *meta { return &p.Meta }

// Practitioner is somebody of the practice, by name and number; how to reach colleagues is not for every reader.
func Practitioner(p Person) Resource {
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
	return edition(&r, p.UpdatedAt)
}

// Member is somebody on a care team.
type Member struct {
	ID   string // of the Practitioner
	Name phi.Text
	Role string // in words
}

// Team is who looks after a patient.
type Team struct {
	PatientID string
	Members   []Member
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

func (t *careTeam) about() *meta { return &t.Meta }

// CareTeam is a patient's care team, which has the patient's id: there is one.
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
	return edition(&r, t.UpdatedAt)
}
