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

// transientCodes are the codes of failures that may pass without a person; all others are refusals.
var transientCodes = []string{CodeTimeout, CodeUnavailable, CodeRateLimited, CodeNotConfigured, CodeSearchOutdated, CodeOutcomeUnknown}

// isRefusal reports whether the EMR refused, so that a person should act at once.
func (f Failure) isRefusal() bool { return !slices.Contains(transientCodes, f.Code) }

// hidesRefusal reports whether a failure would replace an earlier refusal or unknown outcome although nothing was sent since, or the EMR did not
// refuse it: that is what a person must resolve.
func (f Failure) hidesRefusal(c Leased) bool {
	if c.ErrorCode == CodeOutcomeUnknown {
		return f.IsUnsent || !f.isRefusal()
	}
	return f.Code == CodeSearchOutdated && c.ErrorCode != "" && !slices.Contains(transientCodes, c.ErrorCode)
}

// openCorrectionTask opens a task for a copy at the EMR that was not updated: one of a reading entered in error, or of a reading completed
// later. It stays open until a person closes it or an update succeeds.
// Source: docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func openCorrectionTask(tx core.App, c Leased, isRetracted bool, now time.Time) error {
	hasCopy := c.EMRID != "" || c.SentHash != "" || c.Ambiguous
	if !isRetracted && (c.Corrections == 0 || !hasCopy) {
		return nil
	}
	if err := collections.OpenCorrection(tx, c.ID, now); err != nil {
		return err
	}
	notice := notifications.Announcement{
		Kind: notifications.EMRCopyWrong, Severity: "critical", PatientID: c.PatientID,
		Body: "A reading was entered in error after it had been sent to the EMR, which did not accept the correction. Correct the EMR's copy.",
		Key:  "emr_copy_wrong " + c.ObservationID,
	}
	if c.Form == collections.FormDocument {
		notice.Severity, notice.Key, notice.Body = "critical", "emr_document_wrong "+c.ID, documentIsWrong
	} else if !isRetracted {
		notice.Severity, notice.Key = "warning", "emr_copy_incomplete "+c.ObservationID
		notice.Body = "A reading was completed after it had been sent to the EMR, which did not accept the change. Correct the EMR's copy."
	}
	return notifications.Announce(tx, notice, now)
}

// CloseCorrectionTask closes the task to correct the EMR's copy, with a person's notes. Later failures of the same update do not open it again; a
// later change of the reading does.
func CloseCorrectionTask(app core.App, id string, notes phi.Text, by audit.Actor, now time.Time) error {
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
			return fault.State("invalid_state", "This transmission has no open task to correct the EMR's copy.")
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.EMRCorrected, Actor: by, ResourceType: audit.ResourceTransmission, ResourceID: id, PatientID: found.PatientID(), Reason: notes,
		}, now)
	})
}
