package emr

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// The result stored for a delivery that was canceled because the reading had been entered in error.
const (
	codeNeverSent    = collections.NeverSent
	neverSentMessage = "Not sent: the reading was entered in error"
)

// correctionStep is what a changed reading requires of one of its deliveries.
type correctionStep int

const (
	stepNone  correctionStep = iota // nothing was sent, and the next attempt sends the current content
	stepStop                        // nothing was sent, and nothing will be
	stepNote                        // an attempt is under way or its outcome is unknown: send the change after it
	stepQueue                       // the EMR has a copy: update it now
)

// stepAfter returns the step for a delivery after its reading was changed or retracted.
func stepAfter(sent collections.FormDelivery, retracted bool) correctionStep {
	unknown := sent.Ambiguous || sent.Corrections > 0
	switch {
	case sent.Status == collections.FHIRProcessing:
		return stepNote
	case sent.Status == collections.FHIRTransmitted, sent.EMRID != "", retracted && unknown:
		return stepQueue
	case unknown:
		return stepNote
	case retracted:
		return stepStop
	}
	return stepNone
}

// Retract cancels the unsent deliveries of an observation that was entered in error, and marks the copies that the EMR has, or may have, as
// entered in error, inside the caller's transaction. date is the day of the reading in the patient's zone: means sent for that day are
// updated, too. Source: docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func Retract(tx core.App, observationID, patientID string, date, now time.Time) error {
	if err := correctForms(tx, observationID, true, now); err != nil {
		return err
	}
	day := date.Format(time.DateOnly)
	means, err := collections.MeansCovering(tx, patientID, day, day)
	if err != nil {
		return err
	}
	for _, mean := range means {
		if err := applyCorrection(tx, mean, stepAfter(mean, false), now); err != nil {
			return err
		}
	}
	return nil
}

// Correct updates the EMR's copies of a changed observation, inside the caller's transaction.
func Correct(tx core.App, observationID string, now time.Time) error {
	return correctForms(tx, observationID, false, now)
}

// Withhold removes the deliveries of a reading that may be another person's, if they were not attempted, and updates the EMR's copies, inside the
// caller's transaction.
func Withhold(tx core.App, observationID string, now time.Time) error {
	deleted, err := collections.DeleteUnattempted(tx, observationID)
	if err == nil && deleted {
		err = collections.SetFHIRStatus(tx, observationID, "", "", collections.FormatInstant(now))
	}
	if err != nil {
		return err
	}
	return Correct(tx, observationID, now)
}

func correctForms(tx core.App, observationID string, retracted bool, now time.Time) error {
	if err := correctDocuments(tx, observationID, now); err != nil {
		return err
	}
	forms, err := collections.FormDeliveries(tx, observationID)
	if err != nil {
		return err
	}
	for _, sent := range forms {
		if sent.SentHash == collections.InDocument {
			if err := waitForCorrectedDocument(tx, observationID, sent, now); err != nil {
				return err
			}
			continue
		}
		next := stepAfter(sent, retracted)
		if err := applyCorrection(tx, sent, next, now); err != nil {
			return err
		}
		status := map[correctionStep]string{stepStop: collections.FHIRFailed, stepQueue: collections.FHIRPending}[next]
		if status == "" || sent.Form != collections.FormReading {
			continue
		}
		if err := collections.SetFHIRStatus(tx, observationID, status, "", collections.FormatInstant(now)); err != nil {
			return err
		}
	}
	return nil
}

func applyCorrection(tx core.App, sent collections.FormDelivery, s correctionStep, now time.Time) error {
	switch s {
	case stepStop:
		return collections.StopTransmission(tx, sent.ID, codeNeverSent, neverSentMessage, now)
	case stepNote:
		return collections.AddCorrection(tx, sent.ID, now)
	case stepQueue:
		return collections.QueueCorrection(tx, sent.ID, now)
	}
	return nil
}

// recordNeverSent stores the result of a leased delivery of a reading entered in error before it was sent: no copy needs a correction.
func recordNeverSent(tx core.App, c Leased, message string, startedAt, now time.Time) error {
	_, err := storeResult(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRFailed, ErrorCode: codeNeverSent, ErrorMessage: message, Attempts: c.AttemptCount,
	}, startedAt, now)
	if err == nil {
		err = collections.CancelCorrection(tx, c.ID)
	}
	return err
}
