package transmissions

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

var insertPending = collections.NewRowInsert(collections.Transmissions, "id, observation, patient, observation_type, status, created_at, updated_at", "")

// Batch gathers the intents to deliver that one transaction stores, so that their numbers and rows cost few statements
// however many they are. Nobody else may number transmissions in that transaction.
type Batch struct {
	sequence string
	last     int64
	rows     [][]any
}

// Add takes up an intent and returns its number: TXN-<year>-<six digits>, counted anew each year.
// Source: docs/decisions/conventions.md, "Identifiers: integer or uuid".
func (b *Batch) Add(tx core.App, d Draft, now time.Time) (id string, err error) {
	year := now.UTC().Year()
	if sequence := fmt.Sprintf("transmissions-%d", year); sequence != b.sequence {
		if err := b.Store(tx); err != nil {
			return "", err
		}
		if b.last, err = collections.LastNumber(tx, sequence); err != nil {
			return "", err
		}
		b.sequence = sequence
	}
	b.last++
	id = fmt.Sprintf("TXN-%d-%06d", year, b.last)
	at := collections.Instant(now)
	b.rows = append(b.rows, []any{id, d.ObservationID, d.PatientID, d.ObservationType, collections.FHIRPending, at, at})
	return id, nil
}

// Store writes what was added since the last time.
func (b *Batch) Store(tx core.App) error {
	if len(b.rows) == 0 {
		return nil
	}
	if err := collections.SetLastNumber(tx, b.sequence, b.last); err != nil {
		return err
	}
	if err := insertPending.Store(tx, b.rows); err != nil {
		return fmt.Errorf("queue transmissions: %w", err)
	}
	b.rows = nil
	return nil
}

// Queue stores one intent to deliver, inside the transaction that stores its observation.
func Queue(tx core.App, d Draft, now time.Time) (id string, err error) {
	b := Batch{}
	if id, err = b.Add(tx, d, now); err != nil {
		return "", err
	}
	return id, b.Store(tx)
}
