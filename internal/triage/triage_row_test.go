package triage_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A row is stored without a statement journal.
func TestRowUpdateNeedsNoJournal(t *testing.T) {
	app := vigiltest.NewApp(t)
	for _, text := range triage.RowUpdates {
		vigiltest.WantNoJournal(t, app, text)
	}
}
