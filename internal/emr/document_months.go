package emr

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// monthsToCorrect is how long late readings are added to documents.
const monthsToCorrect = 12

// QueueMonths queues the report of the last ended month of every patient with readings in it, and those of earlier months with readings that still
// wait for a document. Each is queued once. Source: docs/decisions/transmissions.md, "Documents".
func (w *Worker) QueueMonths(ctx context.Context, app core.App, now time.Time) (queued int, err error) {
	current := monthStart(now.In(w.Documents.Zone), 0)
	last := monthStart(current, -1)
	first, err := collections.OldestSuspendedReading(app, last)
	if err != nil {
		return 0, err
	}
	for month := last; ; month = monthStart(month, -1) {
		patients, err := collections.PatientsToReport(app, month, monthStart(month, 1), month.Before(last))
		for _, id := range patients {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				break
			}
			var isQueued bool
			if _, isQueued, err = w.QueueDocument(app, MonthDocument(id, month), now); isQueued {
				queued++
			}
		}
		if err != nil {
			return queued, err
		}
		if first.IsZero() || !first.Before(month) {
			break
		}
	}
	return queued, nil
}

// CorrectDocuments queues a new version of the documents of ended periods that lack readings which arrived late.
func (w *Worker) CorrectDocuments(app core.App, now time.Time) (corrected int, err error) {
	outdated, err := collections.OutdatedDocuments(app, monthStart(now.In(w.Documents.Zone), -monthsToCorrect), now)
	for _, id := range outdated {
		if err == nil {
			err = app.RunInTransaction(func(tx core.App) error { return collections.QueueCorrection(tx, id, now) })
			corrected++
		}
	}
	if corrected > 0 {
		w.Wake()
	}
	return corrected, err
}

// monthStart returns the start of the month of a time, or of one so many months later, in its zone.
func monthStart(at time.Time, later int) time.Time {
	year, month, _ := at.Date()
	return collections.ParseDay(time.Date(year, month+time.Month(later), 1, 12, 0, 0, 0, time.UTC).Format(time.DateOnly), at.Location())
}
