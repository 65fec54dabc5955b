package ingest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ByValue compares types that store values by parameter.
var ByValue = cmp.Options{
	cmp.AllowUnexported(triage.Latest{}, alerts.Thresholds{}, vitals.Reading{}), cmpopts.EquateComparable(&vitals.Parameter{}),
}

// VerifyCache updates the writer's cache as its next transaction would, compares each cached snapshot with the database, and returns how
// many there were.
func (w *Writer) VerifyCache(app core.App, now time.Time) (snapshots int, differences string, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		if err := w.cache.invalidateSince(tx, trail.LastID()); err != nil {
			return err
		}
		w.cache.head = trail.LastID()
		for id, patient := range w.cache.patients {
			if patient.snapshot == nil {
				continue
			}
			snapshots++
			fresh, err := triage.ReadSnapshot(tx, id, nil, now)
			if err != nil {
				return err
			}
			remembered := *patient.snapshot
			if err := remembered.ReloadBaseline(tx, nil, now); err != nil {
				return err
			}
			diff := cmp.Diff(fresh, remembered, cmpopts.IgnoreUnexported(triage.PatientSnapshot{}), cmpopts.EquateEmpty(), ByValue,
				cmpopts.SortSlices(func(a, b triage.RecentAlert) bool { return a.CreatedAt.Before(b.CreatedAt) }))
			if diff != "" {
				differences += fmt.Sprintf("%s:\n%s", id, diff)
			}
		}
		return nil
	})
	return snapshots, differences, err
}

// InsertObservation is the statement that stores a reading.
var InsertObservation = insertObservationSQL

// NewSubmission returns the submission of a matched measurement.
var NewSubmission = gatewaySubmission
