package triage_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A place is stored without a journal of the statement.
func TestPlaceKeepsNoJournal(t *testing.T) {
	app := vigiltest.NewApp(t)
	for _, text := range triage.PlaceUpdates {
		vigiltest.WantNoJournal(t, app, text)
	}
}
