package emr

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// notLinked is what stands at a delivery that a person asked for though the EMR does not know the patient.
// Source: docs/decisions/transmissions.md, "Delivery failure texts".
const notLinked = "Patient has no EMR id"

// isNotLinked reports whether there is nobody at the EMR whose the reading would be, so that nothing was sent.
func isNotLinked(e *Error) bool {
	return e != nil && e.Code == CodePatientNotFound && e.Message == notLinked
}

// waitsForLink reports whether a delivery ended because the EMR does not know the patient, before anything of it ever left. Where the EMR has a copy,
// which it is to correct, it is a failure like any other: that must not be forgotten.
// Source: docs/decisions/transmissions.md, "Unlinked patients".
func (d endedDelivery) waitsForLink() bool {
	c := d.claimed
	return isNotLinked(d.err) && c.EMRID == "" && c.SentHash == "" && (c.Corrections == 0 || !c.Ambiguous)
}

// hold has a reading wait until the EMR knows the patient. It uses no slot and is no failure, unless a person asked for it just now, who is told.
func hold(tx core.App, c Claimed, d delivery, out *Result, now time.Time) error {
	if !c.Requested {
		held, linked, err := collections.WaitForLink(tx, c, now)
		if err == nil && !held {
			return ErrLost
		}
		out.Held, out.Again = true, linked
		return err
	}
	out.ErrorCode, out.ErrorMessage = d.err.Code, d.err.Message
	_, err := storeEnd(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRFailed, ErrorCode: d.err.Code, ErrorMessage: d.err.Message, Attempts: c.AttemptCount, Ambiguous: c.Ambiguous,
	}, d.startedAt, now)
	if err != nil {
		return err
	}
	if out.Again, err = collections.MarkWaitingForLink(tx, c, now); err != nil || !out.Again {
		return err
	}
	_, err = collections.ReleaseNextTurn(tx, c.PatientID)
	return err
}

// Linked has what waited until the EMR knew a patient sent, in order of measurement, inside the transaction that stores the link. The worker is to be
// woken after the commit.
func Linked(tx core.App, patientID string, now time.Time) error {
	return collections.ReleaseLinked(tx, patientID, now)
}

// resumeTurns goes on with the patients whose next reading nobody released: the one before it ended without being sent.
func resumeTurns(app core.App) error {
	stalled, err := collections.PatientsWithStalledTurns(app)
	for _, patientID := range stalled {
		if err == nil {
			_, err = collections.ReleaseNextTurn(app, patientID)
		}
	}
	return err
}
