package keyring_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/phi/keyring"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var (
	oldKey = phi.Key{ID: "test", Secret: [phi.KeySize]byte([]byte("vigiltest's key, for no real use"))}
	newKey = phi.Key{ID: "next", Secret: [phi.KeySize]byte([]byte("the key that comes after the old"))}
)

func ringOf(t testing.TB, keys ...phi.Key) *phi.KeyRing {
	t.Helper()
	ring, err := phi.NewKeyRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// useRing makes a ring the ring of the app until the test ends.
func useRing(t testing.TB, app core.App, ring *phi.KeyRing) {
	t.Helper()
	key, err := collections.LoadIndexKey(app, ring)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := phi.NewSealer(ring, key)
	if err != nil {
		t.Fatal(err)
	}
	collections.UseSealer(sealer)
	t.Cleanup(func() { collections.UseSealer(vigiltest.Sealer()) })
}

// newPractice returns an app with patients, a user and an audit row, all sealed under the old key.
func newPractice(t testing.TB, patients int) (app core.App, ids []string) {
	t.Helper()
	app = vigiltest.NewApp(t)
	useRing(t, app, ringOf(t, oldKey))
	vigiltest.User(t, app, authz.Nurse)
	err := app.RunInTransaction(func(tx core.App) error {
		for i := range patients {
			p, err := collections.NewPatient(tx)
			if err != nil {
				return err
			}
			for column, value := range map[string]any{
				"first_name": fmt.Sprint("First", i), "last_name": fmt.Sprint("Last", i), "date_of_birth": "1955-12-10",
				"gender": "other", "mrn": fmt.Sprint("M-", i), "phone": "0",
			} {
				p.Set(column, value)
			}
			if err := tx.SaveNoValidate(p); err != nil {
				return err
			}
			ids = append(ids, p.Id)
		}
		return audit.Append(tx, audit.Entry{Event: audit.PatientImport, Actor: audit.System(), Reason: "Moved in", Changes: audit.Changes{"n": {New: patients}}}, vigiltest.Clock)
	})
	if err != nil {
		t.Fatal(err)
	}
	return app, ids
}

func noProgress(int, int) {}

func noRelease() error { return nil }

func run(t testing.TB, app core.App, ring *phi.KeyRing) keyring.Report {
	t.Helper()
	report, err := keyring.Run(t.Context(), app, ring, audit.System(), vigiltest.Clock, noProgress, noRelease)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// wantNames checks that every name opens under the current ring.
func wantNames(t *testing.T, app core.App, ids []string) {
	t.Helper()
	found, err := collections.PatientsByID(app, ids)
	if err != nil || len(found) != len(ids) {
		t.Fatalf("found %d patients, %v", len(found), err)
	}
	for i, p := range found {
		if p.FirstName() != phi.Text(fmt.Sprint("First", i)) || p.LastName() != phi.Text(fmt.Sprint("Last", i)) {
			t.Fatalf("patient %d lost a name", i)
		}
	}
}

func TestRotation(t *testing.T) {
	app, ids := newPractice(t, 10)
	both := ringOf(t, newKey, oldKey)
	planted, err := app.DB().Update(collections.Patients, dbx.Params{"phone": "555-0100"}, dbx.HashExp{"id": ids[0]}).Execute()
	if n, _ := planted.RowsAffected(); err != nil || n != 1 {
		t.Fatal(err)
	}
	report := run(t, app, both)
	if report.KeyID != "next" || report.Resealed != 10*4-1+2 || report.Unreadable != 1 || report.Remaining != 0 {
		t.Errorf("the report is %+v", report)
	}
	if report.AuditRows["test"] != 1 || len(report.AuditKeys()) != 1 {
		t.Errorf("the audit trail needs %v", report.AuditRows)
	}
	if again := run(t, app, both); again.Resealed != 0 || again.Unreadable != 1 {
		t.Errorf("report of the second rotation: %+v", again)
	}
	useRing(t, app, ringOf(t, newKey)) // the index key and all values open without the old key
	wantNames(t, app, ids)
	if verified, err := audit.Verify(app, nil); err != nil || !verified.Valid {
		t.Errorf("result %+v, %v", verified, err)
	}
}

// A rotation adds nothing to the change feed.
func TestRotationAddsNoChanges(t *testing.T) {
	app, _ := newPractice(t, 3)
	before, err := collections.LastChange(app)
	if err != nil {
		t.Fatal(err)
	}
	if report := run(t, app, ringOf(t, newKey, oldKey)); report.Resealed != 3*4+2 {
		t.Errorf("the report is %+v", report)
	}
	if after, err := collections.LastChange(app); err != nil || after != before {
		t.Errorf("the newest change is %+v, was %+v (%v)", after, before, err)
	}
}

func TestInterruptedRotation(t *testing.T) {
	app, ids := newPractice(t, 450)
	both := ringOf(t, newKey, oldKey)
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	first, err := keyring.Run(ctx, app, both, audit.System(), vigiltest.Clock, func(done, total int) {
		if total != 451 || done > total {
			t.Errorf("%d of %d", done, total)
		}
		if done >= 200 {
			stop(enough)
		}
	}, noRelease)
	if !errors.Is(err, enough) || first.Resealed == 0 || first.Resealed >= 450*4 {
		t.Fatalf("report of the interrupted rotation: %+v, %v", first, err)
	}
	useRing(t, app, both)
	wantNames(t, app, ids) // some under each key
	second := run(t, app, both)
	if first.Resealed+second.Resealed != 450*4+2 {
		t.Errorf("resealed %d and %d values", first.Resealed, second.Resealed)
	}
	useRing(t, app, ringOf(t, newKey))
	wantNames(t, app, ids)
}

// Concurrent writes win over a rotation, and no value is lost.
func TestRotationUnderWrites(t *testing.T) {
	app, ids := newPractice(t, 600)
	both := ringOf(t, newKey, oldKey)
	useRing(t, app, both)
	const writers = 4
	last := make([]int, len(ids)) // the last phone number of each patient
	stop := make(chan struct{})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for round := 1; ; round++ {
				for i := w; i < len(ids); i += writers {
					select {
					case <-stop:
						return
					default:
					}
					p, err := collections.FindPatient(app, ids[i])
					if err != nil {
						t.Error(err)
						return
					}
					p.Set("phone", fmt.Sprint(round))
					if err := app.SaveNoValidate(p); err != nil { // writes every column, including stale ciphertexts
						t.Error(err)
						return
					}
					last[i] = round
				}
			}
		})
	}
	underLoad := run(t, app, both)
	close(stop)
	group.Wait()
	if underLoad.Resealed == 0 || underLoad.Unreadable != 0 {
		t.Errorf("report of the rotation under load: %+v", underLoad)
	}
	run(t, app, both)
	useRing(t, app, ringOf(t, newKey))
	wantNames(t, app, ids)
	found, err := collections.PatientsByID(app, ids)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range found {
		if got := p.Demographics().Phone; got != fmt.Sprint(last[i]) {
			t.Errorf("patient %d has the phone %q, want %d", i, got, last[i])
		}
	}
}

func TestRotationWithoutTheOldKey(t *testing.T) {
	app, _ := newPractice(t, 1)
	_, err := keyring.Run(t.Context(), app, ringOf(t, newKey), audit.System(), vigiltest.Clock, noProgress, noRelease)
	if !errors.Is(err, phi.ErrUnknownKey) || strings.Contains(err.Error(), "v1:") {
		t.Errorf("without the old key: %v", err)
	}
}
