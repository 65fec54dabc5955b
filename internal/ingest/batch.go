package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
)

// batch is what the readings of one transaction share: the audit trail they continue, and the rows that are written
// together at the end.
type batch struct {
	trail      *audit.Chain
	queue      emr.Batch
	days       map[patientDay]dayCount
	totals     map[dayTotal]int
	processing []Outcome
}

// patientDay is a day with data of a patient, as a key of reading_days; its fields are in the order of its columns.
type patientDay struct{ patient, day, kind string }

type dayCount struct {
	first                 string // observation
	readings, fromDevices int
}

// with counts one more reading.
func (c dayCount) with(observation string, fromDevice bool) dayCount {
	if c.readings == 0 {
		c.first = observation
	}
	c.readings++
	if fromDevice {
		c.fromDevices++
	}
	return c
}

// dayTotal is a row of daily_counts.
type dayTotal struct{ day, kind, status string }

func newBatch(tx core.App) (*batch, error) {
	trail, err := audit.NewChain(tx)
	if err != nil {
		return nil, err
	}
	return &batch{trail: trail, days: map[patientDay]dayCount{}, totals: map[dayTotal]int{}}, nil
}

// count keeps the days with data and the totals per day in step with the observations.
func (b *batch) count(e Effects) {
	kind := string(e.Observation.Reading.Kind)
	b.totals[dayTotal{e.CountDay, kind, e.Observation.status()}]++
	if e.Observation.Review == Suspect {
		return // nobody knows whose day it is
	}
	if e.Observation.confirmed {
		b.totals[dayTotal{e.CountDay, kind, collections.StatusSuspect}]--
	}
	key := patientDay{e.Observation.PatientID, e.PatientDay, kind}
	b.days[key] = b.days[key].with(e.Observation.ID, e.DeviceReading)
}

// store writes what was gathered. It comes last in the transaction.
func (b *batch) store(tx core.App) error {
	if err := b.trail.Store(); err != nil {
		return err
	}
	if err := b.queue.Store(tx); err != nil {
		return err
	}
	if err := storeDays(tx, b.days); err != nil {
		return err
	}
	totals := make([][]any, 0, len(b.totals))
	for key, readings := range b.totals {
		if readings == 0 {
			continue // doubted and confirmed in one transaction
		}
		totals = append(totals, []any{key.day, key.kind, key.status, readings})
	}
	if err := collections.AddDailyCounts.Store(tx, totals); err != nil {
		return fmt.Errorf("store daily counts: %w", err)
	}
	return noteTimes(tx, b.processing...)
}

// storeDays adds readings to the days with data.
func storeDays(tx core.App, counted map[patientDay]dayCount) error {
	days := make([][]any, 0, len(counted))
	for key, day := range counted {
		days = append(days, []any{key.patient, key.day, key.kind, day.first, day.readings, day.fromDevices})
	}
	if err := collections.AddReadingDays.Store(tx, days); err != nil {
		return fmt.Errorf("store reading days: %w", err)
	}
	return nil
}

// Answer is what became of one of several readings.
type Answer struct {
	Outcome Outcome
	Err     error
}

// SubmitAll hands over readings, in order of measurement, and returns once each is durably stored, or refused.
func (w *Writer) SubmitAll(ctx context.Context, list []Submission) []Answer {
	answers := make([]Answer, len(list))
	for i, a := range w.group.SubmitAll(ctx, list) {
		answers[i] = Answer{a.Out, waited(a.Err)}
	}
	return answers
}

// sortByMeasurement puts a group in order of measurement, so that it does not matter in which order a device empties its memory. What was
// measured at the same moment stays in the order in which it came.
// Source: docs/decisions/alerts.md, "Readings out of order".
func sortByMeasurement(group []*submitted) []*submitted {
	byTime := func(a, b *submitted) int { return a.In.Reading.MeasuredAt.Compare(b.In.Reading.MeasuredAt) }
	if slices.IsSortedFunc(group, byTime) {
		return group
	}
	group = slices.Clone(group)
	slices.SortStableFunc(group, byTime)
	return group
}

// following adds to a late reading what comes after it in its group, which is in order, and can supersede it: at least as reliable, and
// of a known time. Source: docs/decisions/alerts.md, "Late readings".
func (e *Evaluator) following(s Submission, after []*submitted, now time.Time) Submission {
	if len(after) == 0 || !e.Late(s.Reading.MeasuredAt, now) {
		return s
	}
	s.Following = slices.Clip(s.Following)
	for _, other := range after {
		if other.In.PatientID == s.PatientID && !other.In.unjudged() && other.In.origin().Settles(s.origin()) {
			s.Following = append(s.Following, other.In.Reading)
		}
	}
	return s
}

// errMisled rolls back a group in which a late reading was judged by one that was refused; each is then stored on its own.
var errMisled = errors.New("a late reading was judged by one that is not stored")

// Late reports whether a reading that was measured at a time comes late.
func (e *Evaluator) Late(measuredAt, now time.Time) bool { return e.rules.late(measuredAt, now) }
