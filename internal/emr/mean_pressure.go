package emr

import (
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// QueueMean queues the mean blood pressure of a patient between two dates: once, and again only after a change. Without fresh it queues no
// first delivery. It reports whether it queued one.
// Source: docs/decisions/fhir.md, "Mean blood pressure".
func (w *Worker) QueueMean(app core.App, patientID, from, to string, fresh bool, now time.Time) (queued bool, err error) {
	id := fhir.PartID(patientID, collections.FormMeanPressure+"/"+from)
	err = app.RunInTransaction(func(tx core.App) error {
		sent, status, ok, err := collections.SentMean(tx, id)
		switch {
		case err != nil:
			return err
		case !ok && !fresh:
			return nil
		case !ok:
			queued = true
			_, err := Queue(tx, Draft{
				ObservationID: id, PatientID: patientID, ObservationType: string(vitals.BloodPressure),
				Form: collections.FormMeanPressure, From: from, To: to,
			}, now)
			return err
		case status != collections.FHIRTransmitted:
			return nil // the next attempt sends the current mean
		}
		rendered, err := w.render(tx, sent)
		if _, refused := errors.AsType[*Error](err); refused {
			return nil
		}
		if err != nil || rendered.hash() == sent.SentHash {
			return err
		}
		queued = true
		return collections.QueueCorrection(tx, sent.ID, now)
	})
	if queued && err == nil {
		w.Wake()
	}
	return queued && err == nil, err
}
