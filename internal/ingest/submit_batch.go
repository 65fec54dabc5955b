package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Bounds of batches, so that a large import of old readings does not delay current ones. Source: docs/decisions/observations.md, "Batches".
const (
	// maxConcurrentBatches is how many batches are stored at the same time; others wait.
	maxConcurrentBatches = 4
	// submitChunk is how many readings of a batch are queued at a time: half a transaction.
	submitChunk = 128
	// reportChunk is how many implausible readings of a batch are stored in one transaction.
	reportChunk = 25
)

// BatchReading is one reading of a batch.
type BatchReading struct {
	PatientID string
	Reading   vitals.Reading
	Source    vitals.Source
}

// SubmitAll stores readings of a caller who names their patients, in order of measurement, and returns the results in the caller's order.
// Each is stored, a duplicate, or rejected with a fault. After an error not all of them were processed: the caller sends all again, and
// stored ones are duplicates then.
func (e *Pipeline) SubmitAll(ctx context.Context, app core.App, lines []BatchReading, by audit.Actor, at time.Time) ([]SubmitResult, error) {
	done, err := e.acquireBatchSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	events := make([]gateway.Event, len(lines))
	for i := range lines {
		events[i] = gateway.Event{PatientID: lines[i].PatientID, DeviceID: lines[i].Reading.DeviceID, Reading: &lines[i].Reading}
	}
	batch, answers := e.newBatch(events, at), make([]SubmitResult, len(lines))
	for places := range slices.Chunk(batch.order, submitChunk) {
		list := make([]Submission, len(places))
		for i, index := range places {
			list[i] = callerSubmission(lines[index].PatientID, lines[index].Reading, lines[index].Source, by, at)
			list[i].NewerInBatch = batch.newerThan(events[index])
		}
		for i, answer := range e.Writer.SubmitAll(ctx, list) {
			answers[places[i]] = answer
			batch.recordResult(events[places[i]], answerStatus(answer), lines[places[i]].PatientID)
			if refused, isFault := errors.AsType[*fault.Error](answer.Err); answer.Err != nil && (!isFault || refused.Kind == fault.Unavailable) && err == nil {
				err = answer.Err
			}
		}
		if err != nil {
			break
		}
	}
	return answers, batch.finish(app, err, at)
}

func answerStatus(answer SubmitResult) Status {
	switch {
	case answer.Err != nil:
		return Rejected
	case answer.Outcome.Duplicate:
		return Duplicate
	}
	return Stored
}

// acquireBatchSlot waits for a slot to store a batch.
func (e *Pipeline) acquireBatchSlot(ctx context.Context) (leave func(), err error) {
	select {
	case e.batchSlots <- struct{}{}:
		return func() { <-e.batchSlots }, nil
	case <-ctx.Done():
		return nil, fault.Overloaded(time.Second)
	}
}

// ReportAllImplausible calls [Pipeline.ReportImplausible] for each report, in order of measurement.
func (e *Pipeline) ReportAllImplausible(app core.App, reports []ImplausibleReport, by audit.Actor, now time.Time) error {
	reports = slices.Clone(reports)
	slices.SortStableFunc(reports, func(a, b ImplausibleReport) int { return a.Reading.MeasuredAt.Compare(b.Reading.MeasuredAt) })
	for some := range slices.Chunk(reports, reportChunk) {
		err := app.RunInTransaction(func(tx core.App) error {
			for _, r := range some {
				if err := e.ReportImplausible(tx, r, by, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
