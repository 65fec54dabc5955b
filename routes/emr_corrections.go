package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/routes/web"
)

// heldView is what a transmission waits for besides its time, and what it asks of a person.
type heldView struct {
	WaitsFor   *string         `json:"waits_for"`
	Correction *correctionView `json:"correction"`
}

// correctionView is the task of correcting the EMR's copy by hand.
type correctionView struct {
	DueSince       string  `json:"due_since"`
	AcknowledgedAt *string `json:"acknowledged_at"`
	AcknowledgedBy *string `json:"acknowledged_by"`
	Notes          *string `json:"notes"`
}

func viewHeld(t *collections.Transmission) heldView {
	v := heldView{WaitsFor: orNull(t.WaitsFor())}
	if since := t.CorrectionDueAt(); !since.IsZero() {
		v.Correction = &correctionView{
			input.FormatInstant(since), instantOrNull(t.CorrectionClosedAt()), orNull(t.CorrectionClosedBy()), orNull(t.CorrectionNote().Reveal()),
		}
	}
	return v
}

// fhirPeopleView counts what waits for a person, of all days.
type fhirPeopleView struct {
	Unlinked       int `json:"unlinked"`
	CorrectionsDue int `json:"corrections_due"`
}

// correctedBody says what was done about a copy at the EMR.
type correctedBody struct {
	Notes input.String `json:"notes"`
}

func (b correctedBody) read(checks *input.Checks) phi.Text {
	return phi.Text(checks.Text("notes", b.Notes, input.Required(2000)))
}

// acknowledgeCorrection closes the task of correcting the EMR's copy: a person says that it was seen to.
func (a *api) acknowledgeCorrection(c *web.Call) error {
	notes, err := web.Read(c, correctedBody.read)
	if err != nil {
		return err
	}
	id := c.Request.PathValue("id")
	found, _, err := transmissions.Find(c.App, id)
	if err != nil {
		return err
	}
	if err := a.reachPresent(c, found.PatientID()); err != nil {
		return err
	}
	if err := transmissions.Acknowledge(c.App, id, notes, c.Actor(), c.Now); err != nil {
		return err
	}
	return a.readTransmission(c)
}
