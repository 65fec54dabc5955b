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

// writeBatch is what the readings of one transaction share: the audit trail they continue, and the rows that are written
// together at the end.
type writeBatch struct {
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

// plus counts one more reading.
func (c dayCount) plus(observation string, fromDevice bool) dayCount {
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

func newWriteBatch(tx core.App) (*writeBatch, error) {
	trail, err := audit.NewChain(tx)
	if err != nil {
		return nil, err
	}
	return &writeBatch{trail: trail, days: map[patientDay]dayCount{}, totals: map[dayTotal]int{}}, nil
}

// countReading keeps the days with data and the totals per day in step with the observations.
func (b *writeBatch) countReading(e Effects) {
	kind := string(e.Observation.Reading.Kind)
	b.totals[dayTotal{e.CountDay, kind, e.Observation.status()}]++
	if e.Observation.Review == Suspect {
		return // nobody knows whose day it is
	}
	if e.Observation.newlyConfirmed {
		b.totals[dayTotal{e.CountDay, kind, collections.StatusSuspect}]--
	}
	key := patientDay{e.Observation.PatientID, e.PatientDay, kind}
	b.days[key] = b.days[key].plus(e.Observation.ID, e.DeviceReading)
}

// store writes what was gathered. It comes last in the transaction.
func (b *writeBatch) store(tx core.App) error {
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
	return recordLatencies(tx, b.processing...)
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

// SubmitResult is what became of one of several readings.
type SubmitResult struct {
	Outcome Outcome
	Err     error
}

// SubmitAll hands over readings, in order of measurement, and returns once each is durably stored, or refused.
func (w *Writer) SubmitAll(ctx context.Context, list []Submission) []SubmitResult {
	answers := make([]SubmitResult, len(list))
	for i, a := range w.group.SubmitAll(ctx, list) {
		answers[i] = SubmitResult{a.Out, asUnavailable(a.Err)}
	}
	return answers
}

// sortByMeasurement puts a group in order of measurement, so that it does not matter in which order a device empties its memory. What was
// measured at the same moment stays in the order in which it came.
// Source: docs/decisions/alerts.md, "Readings out of order".
func sortByMeasurement(group []*groupItem) []*groupItem {
	byTime := func(a, b *groupItem) int { return a.In.Reading.MeasuredAt.Compare(b.In.Reading.MeasuredAt) }
	if slices.IsSortedFunc(group, byTime) {
		return group
	}
	group = slices.Clone(group)
	slices.SortStableFunc(group, byTime)
	return group
}

// addNewerInGroup adds to a late reading what comes after it in its group, which is in order, and can supersede it: at least as reliable, and
// of a known time. Source: docs/decisions/alerts.md, "Late readings".
func (e *Evaluator) addNewerInGroup(s Submission, after []*groupItem, now time.Time) Submission {
	if len(after) == 0 || !e.IsLate(s.Reading.MeasuredAt, now) {
		return s
	}
	s.NewerInBatch = slices.Clip(s.NewerInBatch)
	for _, other := range after {
		if other.In.PatientID == s.PatientID && !other.In.skipsEvaluation() && other.In.origin().Settles(s.origin()) {
			s.NewerInBatch = append(s.NewerInBatch, other.In.Reading)
		}
	}
	return s
}

// errStaleGroup rolls back a group in which a late reading was judged by one that was refused; each is then stored on its own.
var errStaleGroup = errors.New("a late reading was judged by one that is not stored")

// IsLate reports whether a reading that was measured at a time comes late.
func (e *Evaluator) IsLate(measuredAt, now time.Time) bool { return e.rules.isLate(measuredAt, now) }
