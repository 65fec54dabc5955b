package ingest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
)

// writeBatch is shared by the readings of one transaction: the audit chain, and the rows that are written together at the end.
type writeBatch struct {
	trail      *audit.Chain
	queue      emr.Batch
	days       map[patientDay]dayCount
	totals     map[dayTotal]int
	processing []Outcome
	bounds     []Observation // evaluated readings
	suspended  []*retraction // whose days are counted again
}

func newWriteBatch(tx core.App) (*writeBatch, error) {
	trail, err := audit.NewChain(tx)
	if err != nil {
		return nil, err
	}
	return &writeBatch{trail: trail, days: map[patientDay]dayCount{}, totals: map[dayTotal]int{}}, nil
}

// dayTotal is a row of daily_counts.
type dayTotal struct{ day, kind, status string }

// countReading updates the days with data and the daily totals.
func (b *writeBatch) countReading(e Effects) {
	kind := string(e.Observation.Reading.Kind)
	b.totals[dayTotal{e.CountDay, kind, e.Observation.status()}]++
	if e.Observation.Review == Suspect {
		return // its patient is not certain
	}
	if e.Observation.newlyConfirmed {
		b.totals[dayTotal{e.CountDay, kind, collections.StatusSuspect}]--
	}
	key := patientDay{e.Observation.PatientID, e.PatientDay, kind}
	b.days[key] = b.days[key].plus(e.Observation.ID, e.DeviceReading)
}

// countUnevaluated adds a stored reading without effects to the daily totals.
func (b *writeBatch) countUnevaluated(o Observation, practice *time.Location) Outcome {
	b.totals[dayTotal{o.Reading.MeasuredAt.In(practice).Format(time.DateOnly), string(o.Reading.Kind), o.status()}]++
	outcome := Outcome{Observation: o, CheckDevice: true}
	b.processing = append(b.processing, outcome)
	return outcome
}

// auditAlert records a change to a stored alert.
func (b *writeBatch) auditAlert(event audit.Event, by audit.Actor, alertID, patientID string, now time.Time) error {
	return b.trail.Add(audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10), PatientID: patientID,
	}, now)
}

// appendDirectly runs work that appends to the audit trail itself: the entries so far are stored before it, and the chain continues after it.
func (b *writeBatch) appendDirectly(tx core.App, work func() error) error {
	err := b.trail.Store()
	if err == nil {
		err = work()
	}
	if err == nil {
		b.trail, err = audit.NewChain(tx)
	}
	return err
}

// storeBounds stores the bounds by which the readings were evaluated.
func (b *writeBatch) storeBounds(tx core.App) error {
	for _, o := range b.bounds {
		text, err := o.Bounds.Encode()
		if err == nil && text != "" {
			err = collections.SetEvaluatedBounds(tx, o.ID, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// store writes all collected rows, last in the transaction.
func (b *writeBatch) store(tx core.App) error {
	if err := b.trail.Store(); err != nil {
		return err
	}
	if err := b.queue.Store(tx); err != nil {
		return err
	}
	if err := b.storeBounds(tx); err != nil {
		return err
	}
	if err := storeDays(tx, b.days); err != nil {
		return err
	}
	for _, w := range b.suspended {
		if err := w.recountDay(); err != nil {
			return err
		}
	}
	totals := make([][]any, 0, len(b.totals))
	for key, readings := range b.totals {
		if readings == 0 {
			continue // suspected and confirmed in one transaction
		}
		totals = append(totals, []any{key.day, key.kind, key.status, readings})
	}
	if err := collections.AddDailyCounts.Store(tx, totals); err != nil {
		return fmt.Errorf("store daily counts: %w", err)
	}
	return recordLatencies(tx, b.processing...)
}
