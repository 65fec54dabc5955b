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

// Bounds of batches, so that what is measured now never waits long for what was measured long ago.
// Source: docs/decisions/observations.md, "Batches".
const (
	// batchesAtOnce is how many batches are stored at the same time; the others wait.
	batchesAtOnce = 4
	// handedInTogether is how many readings of a batch wait to be stored, half of a transaction.
	handedInTogether = 128
	// reportedTogether is how many implausible readings of a batch are kept in one transaction.
	reportedTogether = 25
)

// Line is a reading of a batch.
type Line struct {
	PatientID string
	Reading   vitals.Reading
	Source    vitals.Source
}

// SubmitAll takes readings of a caller who names their patients, in order of measurement, and says what became of each, in the caller's order.
// Each is stored, known, or refused with a fault. An error means that not all of them were taken: who sends all of it again finds what is stored
// already known.
func (e *Pipeline) SubmitAll(ctx context.Context, app core.App, lines []Line, by audit.Actor, at time.Time) ([]Answer, error) {
	done, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	events, all := eventsOf(lines), &together{engine: e, newest: newest{}, at: at}
	order := deliveryOrder(events, func(event gateway.Event) (gateway.Event, bool) { return event, true })
	for _, place := range order {
		all.newest.add(events[place])
	}
	answers := make([]Answer, len(lines))
	for places := range slices.Chunk(order, handedInTogether) {
		list := make([]Submission, len(places))
		for i, place := range places {
			list[i] = newSubmission(lines[place].PatientID, lines[place].Reading, lines[place].Source, by, at)
			list[i].Following = all.following(events[place])
		}
		for i, answer := range e.Writer.SubmitAll(ctx, list) {
			answers[places[i]] = answer
			all.note(events[places[i]], statusOf(answer), lines[places[i]].PatientID)
			if refused, isFault := errors.AsType[*fault.Error](answer.Err); answer.Err != nil && (!isFault || refused.Kind == fault.Unavailable) && err == nil {
				err = answer.Err
			}
		}
		if err != nil {
			all.missing = true
			break
		}
	}
	return answers, errors.Join(err, all.reconsider(app, at))
}

func eventsOf(lines []Line) []gateway.Event {
	events := make([]gateway.Event, len(lines))
	for i := range lines {
		events[i] = gateway.Event{PatientID: lines[i].PatientID, DeviceID: lines[i].Reading.DeviceID, Reading: &lines[i].Reading}
	}
	return events
}

func statusOf(answer Answer) Status {
	switch {
	case answer.Err != nil:
		return Refused
	case answer.Outcome.Duplicate:
		return Known
	}
	return Stored
}

// enter waits for a turn to store a batch.
func (e *Pipeline) enter(ctx context.Context) (leave func(), err error) {
	select {
	case e.batches <- struct{}{}:
		return func() { <-e.batches }, nil
	case <-ctx.Done():
		return nil, fault.Overloaded(time.Second)
	}
}

// ReportAll is [Engine.Report] of many, in order of measurement.
func (e *Pipeline) ReportAll(app core.App, reports []Report, by audit.Actor, now time.Time) error {
	reports = slices.Clone(reports)
	slices.SortStableFunc(reports, func(a, b Report) int { return a.Reading.MeasuredAt.Compare(b.Reading.MeasuredAt) })
	for some := range slices.Chunk(reports, reportedTogether) {
		err := app.RunInTransaction(func(tx core.App) error {
			for _, r := range some {
				if err := e.Report(tx, r, by, now); err != nil {
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
