package patients

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
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

// maxEntryDelay is how long after monitoring began its patient may be entered. Source:
// docs/decisions/patients.md, "Archiving and death".
const maxEntryDelay = 30 * 24 * time.Hour

// Read checks the body. Dates are in the patient's zone; born is the date of birth, YYYY-MM-DD, and began when monitoring began.
// Source: docs/decisions/patients.md, "Archiving and death".
func (b ArchiveBody) Read(c *validate.Checks, now time.Time, zone *time.Location, born string, began time.Time) ArchiveDraft {
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
	switch ended := d.EffectiveAt.In(zone).Format(time.DateOnly); {
	case d.EffectiveAt.IsZero():
	case d.EffectiveAt.After(now):
		c.Reject("effective_at", "Must not be in the future.")
	case ended < d.DeceasedAt:
		c.Reject("effective_at", "Must not be before deceased_at.")
	case ended < born:
		c.Reject("effective_at", "Must not be before the date of birth.")
	case ended < began.In(zone).Format(time.DateOnly):
		c.Reject("effective_at", "Must not be before the patient was enrolled.")
	}
	confirmed := c.Boolean("confirm", b.Confirm, false)
	d.Confirmed = confirmed != nil && *confirmed
	return d
}

// MonitoringBegan returns the time before which monitoring cannot have ended: the first consent,
// device or minutes on record, or maxEntryDelay before the record was created; the earlier one counts.
// Source: docs/decisions/patients.md, "Archiving and death".
func MonitoringBegan(app core.App, p *collections.Patient) (time.Time, error) {
	first, err := collections.FirstMonitored(app, p.Id)
	if began := p.CreatedAt().Add(-maxEntryDelay); first.IsZero() || began.Before(first) {
		return began, err
	}
	return first, err
}
