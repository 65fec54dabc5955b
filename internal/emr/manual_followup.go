package emr

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// passing are the codes of failures that pass by themselves: whatever else the EMR answers, it has refused.
var passing = []string{CodeTimeout, CodeUnavailable, CodeRateLimited, CodeNotConfigured, CodeSearchOutdated}

// refused reports whether the EMR refused, so that a person had better look at once.
func (f Failure) refused() bool { return !slices.Contains(passing, f.Code) }

// hides reports whether a failure would hide that the EMR refused: nothing was sent since, and the refusal is what somebody has to mend.
func (f Failure) hides(c Claimed) bool {
	return f.Code == CodeSearchOutdated && c.ErrorCode != "" && !slices.Contains(passing, c.ErrorCode)
}

// leaveToPeople makes a task for a person of a copy at the EMR that does not follow: a reading that was entered in error there as a good one, or one that
// was completed and stands there as it was. It stays open until a person closes it or an update arrives, whoever was told of it.
// Source: docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func leaveToPeople(tx core.App, c Claimed, withdrawn bool, now time.Time) error {
	copied := c.EMRID != "" || c.SentHash != "" || c.Ambiguous
	if !withdrawn && (c.Corrections == 0 || !copied) {
		return nil
	}
	if err := collections.OpenCorrection(tx, c.ID, now); err != nil {
		return err
	}
	told := notifications.Announcement{
		Kind: notifications.EMRCopyWrong, Severity: "critical", PatientID: c.PatientID,
		Body: "A reading was entered in error after it had been sent to the EMR, which does not take the correction. Correct the EMR's copy.",
		Key:  "emr_copy_wrong " + c.ObservationID,
	}
	if !withdrawn {
		told.Severity, told.Key = "warning", "emr_copy_incomplete "+c.ObservationID
		told.Body = "A reading was completed after it had been sent to the EMR, which does not take the change. Correct the EMR's copy."
	}
	return notifications.Announce(tx, told, now)
}

// Acknowledge closes the task of correcting the EMR's copy: a person says what was done about it. Later failures of the same update do not open it
// again; a later change of the reading does.
func Acknowledge(app core.App, id string, notes phi.Text, by audit.Actor, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		found, err := collections.FindTransmission(tx, id)
		if err != nil {
			return fault.OrMissing(err)
		}
		closed, err := collections.CloseCorrection(tx, id, by.Email, notes, now)
		if err != nil {
			return err
		}
		if !closed {
			return fault.State("invalid_state", "Nothing at the EMR is to be corrected by hand.")
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.EMRCorrected, Actor: by, ResourceType: audit.ResourceTransmission, ResourceID: id, PatientID: found.PatientID(), Reason: notes,
		}, now)
	})
}
