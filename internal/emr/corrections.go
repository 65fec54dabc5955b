package emr

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// What is stored of a delivery that never was because the reading had been entered in error.
const (
	codeWithdrawn = collections.NeverSent
	notSent       = "Not sent: the reading was entered in error"
)

// step is what a change of a reading asks of one of its transmissions.
type step int

const (
	leave step = iota // nothing has left, and what will leave says what holds then
	stop              // nothing has left, and nothing will
	note              // something is under way, or its end is unknown: the next send follows the change
	queue             // the EMR has a copy, which is to follow now
)

// after is the step of a transmission whose reading has changed, or was withdrawn.
func after(sent collections.FormDelivery, withdrawn bool) step {
	unknown := sent.Ambiguous || sent.Corrections > 0
	switch {
	case sent.Status == collections.FHIRProcessing:
		return note
	case sent.Status == collections.FHIRTransmitted, sent.EMRID != "", withdrawn && unknown:
		return queue
	case unknown:
		return note
	case withdrawn:
		return stop
	}
	return leave
}

// Withdraw ends the delivery of an observation that was entered in error, inside the caller's transaction: what has not left yet never
// leaves, and what the EMR has, or may have, is marked as entered in error there. date is the day of the reading in the patient's zone:
// means that were sent of that day follow, too. Source: docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func Withdraw(tx core.App, observationID, patientID string, date, now time.Time) error {
	if err := follow(tx, observationID, true, now); err != nil {
		return err
	}
	day := date.Format(time.DateOnly)
	means, err := collections.MeansCovering(tx, patientID, day, day)
	if err != nil {
		return err
	}
	for _, mean := range means {
		if err := applyCorrection(tx, mean, after(mean, false), now); err != nil {
			return err
		}
	}
	return nil
}

// Correct has the EMR's copy of an observation follow a change, inside the caller's transaction.
func Correct(tx core.App, observationID string, now time.Time) error {
	return follow(tx, observationID, false, now)
}

func follow(tx core.App, observationID string, withdrawn bool, now time.Time) error {
	forms, err := collections.FormDeliveries(tx, observationID)
	if err != nil {
		return err
	}
	for _, sent := range forms {
		next := after(sent, withdrawn)
		if err := applyCorrection(tx, sent, next, now); err != nil {
			return err
		}
		status := map[step]string{stop: collections.FHIRFailed, queue: collections.FHIRPending}[next]
		if status == "" || sent.Form != collections.FormReading {
			continue
		}
		if err := collections.SetFHIRStatus(tx, observationID, status, "", collections.Instant(now)); err != nil {
			return err
		}
	}
	return nil
}

func applyCorrection(tx core.App, sent collections.FormDelivery, s step, now time.Time) error {
	switch s {
	case stop:
		return collections.StopTransmission(tx, sent.ID, codeWithdrawn, notSent, now)
	case note:
		return collections.CountCorrection(tx, sent.ID, now)
	case queue:
		return collections.QueueCorrection(tx, sent.ID, now)
	}
	return nil
}

// neverSent stores the end of a claimed transmission whose reading was entered in error before it left: there is no copy to be corrected, either.
func neverSent(tx core.App, c Claimed, startedAt, now time.Time) error {
	_, err := storeEnd(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRFailed, ErrorCode: codeWithdrawn, ErrorMessage: notSent, Attempts: c.AttemptCount,
	}, startedAt, now)
	if err == nil {
		err = collections.CancelCorrection(tx, c.ID)
	}
	return err
}
