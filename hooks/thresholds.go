package hooks

import (
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/ranking"
)

// guardThresholds checks bounds whoever writes them, logs what changes, and ranks the patient anew.
func (h *hooks) guardThresholds(e *core.RecordEvent) error {
	return ranking.GuardThresholds(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
}

// dropThresholds lets a patient fall back to the practice's bounds, which themselves stay.
func (h *hooks) dropThresholds(e *core.RecordEvent) error {
	if collections.PatientOf(e.Record) == "" {
		return router.NewBadRequestError("The practice's thresholds cannot be deleted.", nil)
	}
	return ranking.DropThresholds(e.App, e.Record, writerOf(e.Record), h.Clock(), e.Next)
}

// derived are the collections that only the service writes: a change by hand would contradict what they are made from.
var derived = []string{collections.BillingEntries, collections.Passkeys, collections.TimeEntries, collections.Snoozes, collections.ThresholdChanges, collections.TriageScores}

// refuseByHand keeps the dashboard from writing what is derived.
func (h *hooks) refuseByHand(e *core.RecordEvent) error {
	if fromDashboard(e.Record) {
		return router.NewBadRequestError("Records of this kind are written by the service alone.", nil)
	}
	return e.Next()
}
