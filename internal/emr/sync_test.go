package emr_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A sync entry is written once an hour at most, and only after a delivery and with an empty queue.
func TestNoteSync(t *testing.T) {
	app, at := vigiltest.NewApp(t), vigiltest.Clock
	store := func(id, status string) {
		t.Helper()
		row := dbx.Params{"id": id, "observation": id, "status": status, "last_attempted_at": collections.FormatInstant(at)}
		if _, err := app.DB().Insert(collections.Transmissions, row).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	noted := func(want int) {
		t.Helper()
		if err := emr.NoteSync(app, at); err != nil {
			t.Fatal(err)
		}
		if _, total, err := audit.List(app, audit.Filter{Event: string(audit.EMRSync)}, 0, 1); total != want || err != nil {
			t.Errorf("at %s it is noted %d times, want %d (%v)", at.Format(time.TimeOnly), total, want, err)
		}
	}
	noted(0)
	store("t1", "transmitted")
	store("t2", "pending")
	noted(0)
	if _, err := app.DB().Update(collections.Transmissions, dbx.Params{"status": "transmitted"}, dbx.HashExp{"id": "t2"}).Execute(); err != nil {
		t.Fatal(err)
	}
	noted(1)
	at = at.Add(30 * time.Minute)
	store("t3", "transmitted")
	noted(1)
	at = at.Add(30 * time.Minute)
	noted(2)
	at = at.Add(5 * time.Hour)
	noted(2)
}
