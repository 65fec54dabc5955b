package emr

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Draft is a delivery to be queued.
type Draft struct {
	ObservationID, PatientID, ObservationType string
	// Form is what is sent; From and To are the dates of a mean's period.
	Form, From, To string
}

const pendingColumns = "id, observation, patient, observation_type, status, created_at, updated_at"

// Readings are many, so their rows have only the columns they need; other forms add which form they are.
var (
	insertPending = collections.NewRowInsert(collections.Transmissions, pendingColumns, "")
	insertForms   = collections.NewRowInsert(collections.Transmissions, pendingColumns+", form, period_from, period_to", "")
)

// Batch collects the deliveries that one transaction queues, so that numbering and inserting any number of them costs few statements.
// Nothing else may number deliveries in that transaction.
type Batch struct {
	sequence string
	last     int64
	rows     [][]any
	forms    [][]any
}

// Add collects a delivery and returns its number: TXN-<year>-<six digits>, starting again each year.
// Source: docs/decisions/conventions.md, "Identifiers: integer or uuid".
func (b *Batch) Add(tx core.App, d Draft, now time.Time) (id string, err error) {
	year := now.UTC().Year()
	if sequence := fmt.Sprintf("transmissions-%d", year); sequence != b.sequence {
		if err := b.Store(tx); err != nil {
			return "", err
		}
		if b.last, err = collections.LastValue(tx, sequence); err != nil {
			return "", err
		}
		b.sequence = sequence
	}
	b.last++
	id = fmt.Sprintf("TXN-%d-%06d", year, b.last)
	at := collections.FormatInstant(now)
	row := []any{id, d.ObservationID, d.PatientID, d.ObservationType, collections.FHIRPending, at, at}
	if d.Form == collections.FormReading {
		b.rows = append(b.rows, row)
	} else {
		b.forms = append(b.forms, append(row, d.Form, d.From, d.To))
	}
	return id, nil
}

// Store writes the deliveries added since the last call.
func (b *Batch) Store(tx core.App) error {
	if len(b.rows)+len(b.forms) == 0 {
		return nil
	}
	if err := collections.SetLastValue(tx, b.sequence, b.last); err != nil {
		return err
	}
	if err := insertPending.Store(tx, b.rows); err != nil {
		return fmt.Errorf("queue transmissions: %w", err)
	}
	if err := insertForms.Store(tx, b.forms); err != nil {
		return fmt.Errorf("queue transmissions of other forms: %w", err)
	}
	b.rows, b.forms = nil, nil
	return nil
}

// Queue queues one delivery in the transaction that stores its observation.
func Queue(tx core.App, d Draft, now time.Time) (id string, err error) {
	b := Batch{}
	if id, err = b.Add(tx, d, now); err != nil {
		return "", err
	}
	return id, b.Store(tx)
}
