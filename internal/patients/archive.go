package patients

import (
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// ArchiveBody is the body that archives a patient.
type ArchiveBody struct {
	Reason      validate.String  `json:"reason"`
	DeceasedAt  validate.String  `json:"deceased_at"`
	EffectiveAt validate.String  `json:"effective_at"`
	Confirm     validate.Boolean `json:"confirm"`
}

// ArchiveDraft is a validated [ArchiveBody].
type ArchiveDraft struct {
	Reason      phi.Text
	DeceasedAt  string    // YYYY-MM-DD; "" for none
	EffectiveAt time.Time // zero for the time of archiving
	Confirmed   bool
}

// Read checks the body. Dates are in the patient's zone; born is the date of birth, YYYY-MM-DD.
// Source: docs/decisions/patients.md, "Archiving and death".
func (b ArchiveBody) Read(c *validate.Checks, now time.Time, zone *time.Location, born string) ArchiveDraft {
	d := ArchiveDraft{
		Reason:     phi.Text(c.Text("reason", b.Reason, validate.Required(500).Multiline())),
		DeceasedAt: c.Date("deceased_at", b.DeceasedAt, false),
	}
	switch {
	case d.DeceasedAt == "":
	case d.DeceasedAt > now.In(zone).Format(time.DateOnly):
		c.Reject("deceased_at", "Must not be in the future.")
	case d.DeceasedAt < born:
		c.Reject("deceased_at", "Must not be before the date of birth.")
	}
	d.EffectiveAt, _ = dateOrInstant(c, "effective_at", b.EffectiveAt, false, zone)
	switch {
	case d.EffectiveAt.IsZero():
	case d.EffectiveAt.After(now):
		c.Reject("effective_at", "Must not be in the future.")
	case d.EffectiveAt.In(zone).Format(time.DateOnly) < d.DeceasedAt:
		c.Reject("effective_at", "Must not be before deceased_at.")
	}
	confirmed := c.Boolean("confirm", b.Confirm, false)
	d.Confirmed = confirmed != nil && *confirmed
	return d
}
