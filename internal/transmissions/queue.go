package transmissions

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Batch gathers the intents to deliver that one transaction stores, so that their numbers and rows cost two statements
// however many they are. Nobody else may number transmissions in that transaction.
type Batch struct {
	sequence string
	last     int64
	rows     [][5]string
}

// Add takes up an intent and returns its number: TXN-<year>-<six digits>, counted anew each year.
// Source: docs/decisions.md, "Identifiers: integer or uuid".
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
	b.rows = append(b.rows, [5]string{id, d.ObservationID, d.PatientID, d.ObservationType, collections.Instant(now)})
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
	rows, err := json.Marshal(b.rows)
	if err != nil {
		return fmt.Errorf("list transmissions to queue: %w", err)
	}
	_, err = tx.NonconcurrentDB().NewQuery(`INSERT INTO transmissions
			(id, observation, patient, observation_type, status, created_at, updated_at)
		SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, {:status}, value ->> 4, value ->> 4 FROM json_each({:rows})`).
		Bind(dbx.Params{"status": collections.FHIRPending, "rows": string(rows)}).Execute()
	if err != nil {
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
