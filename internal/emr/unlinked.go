package emr

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// notLinked is the message of a manual transmit for a patient without an EMR id.
// Source: docs/decisions/transmissions.md, "Delivery failure texts".
const notLinked = "Patient has no EMR id"

// isNotLinked reports whether the patient has no EMR id, so that nothing was sent.
func isNotLinked(e *Error) bool {
	return e != nil && e.Code == CodePatientNotFound && e.Message == notLinked
}

// waitsForLink reports whether a delivery failed because the patient is not linked, before anything was ever sent. If the EMR has a copy to
// correct, it is a failure like any other and stays visible.
// Source: docs/decisions/transmissions.md, "Unlinked patients".
func (d deliveryResult) waitsForLink() bool {
	c := d.leased
	return isNotLinked(d.err) && c.ErrorCode != CodeOutcomeUnknown && c.EMRID == "" && c.SentHash == "" && (c.Corrections == 0 || !c.Ambiguous)
}

// blockUntilLinked blocks a delivery until the patient is linked. It uses no attempt and is no failure, except for a manual transmit.
func blockUntilLinked(tx core.App, c Leased, d deliveryOutcome, out *Result, now time.Time) error {
	if !c.Requested {
		isBlocked, linked, err := collections.WaitForLink(tx, c, now)
		if err == nil && !isBlocked {
			return ErrLeaseExpired
		}
		out.Blocked, out.MoreDue = true, linked
		return err
	}
	out.ErrorCode, out.ErrorMessage = d.err.Code, d.err.Message
	_, err := storeResult(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRFailed, ErrorCode: d.err.Code, ErrorMessage: d.err.Message, Attempts: c.AttemptCount, Ambiguous: c.Ambiguous,
	}, d.startedAt, now)
	if err != nil {
		return err
	}
	if out.MoreDue, err = collections.MarkWaitingForLink(tx, c, now); err != nil || !out.MoreDue {
		return err
	}
	_, err = collections.ReleaseNextTurn(tx, c.PatientID)
	return err
}

// ReleaseLinked makes a patient's blocked deliveries due, in order of measurement, inside the transaction that stores the link. The caller
// wakes the worker after the commit.
func ReleaseLinked(tx core.App, patientID string, now time.Time) error {
	return collections.ReleaseLinked(tx, patientID, now)
}

// releaseStalledTurns releases the next delivery where the previous one of a patient ended without being sent.
func releaseStalledTurns(app core.App) error {
	stalled, err := collections.PatientsWithStalledTurns(app)
	for _, patientID := range stalled {
		if err == nil {
			_, err = collections.ReleaseNextTurn(app, patientID)
		}
	}
	return err
}
