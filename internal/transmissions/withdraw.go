package transmissions

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// codeWithdrawn is the error code of what will not be delivered because the reading was entered in error.
const codeWithdrawn = "entered_in_error"

// Withdraw ends the delivery of an observation that was entered in error, inside the caller's transaction: what has not
// left yet never leaves. reached says that the EMR has a copy, or may have one; to correct that is a person's task.
// Source: docs/decisions/observations.md, "Wrongly entered reading".
func Withdraw(tx core.App, observationID string, now time.Time) (reached bool, err error) {
	status, ambiguous, err := collections.TransmissionState(tx, observationID)
	if collections.Missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if status == collections.FHIRTransmitted || status == collections.FHIRProcessing {
		return true, nil // done, or under way: its end is stored as always
	}
	err = collections.WithdrawTransmission(tx, observationID, codeWithdrawn, "Not sent: the reading was entered in error", now)
	if err != nil {
		return false, err
	}
	return ambiguous, collections.SetFHIRStatus(tx, observationID, collections.FHIRFailed, "", collections.Instant(now))
}
