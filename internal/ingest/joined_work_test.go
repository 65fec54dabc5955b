package ingest_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Joined work runs in order with the readings of its transaction, and its failure costs no reading.
func TestJoinedWorkCommitsWithReadings(t *testing.T) {
	errWork := errors.New("it does not work")
	for name, fails := range map[string]bool{"all is well": false, "one fails": true} {
		t.Run(name, func(t *testing.T) {
			app, engine := newApp(t, rules)
			w := startWriter(t, app, engine)
			patient := vigiltest.Patient(t, app, nil)
			if _, err := w.Submit(t.Context(), gatewaySubmission(patient, at(bloodPressure(120, 80), now.Add(-time.Hour)))); err != nil {
				t.Fatal(err)
			}
			began, gate := make(chan struct{}), make(chan struct{})
			var once sync.Once
			works := []func(tx core.App) error{
				func(tx core.App) error {
					_, err := alerts.StartSnooze(tx, patient, alerts.SnoozeDraft{
						Snooze: alerts.Snooze{Type: "blood_pressure", EndsAt: now.Add(time.Hour)}, Reason: "at the dentist",
					}, audit.Actor{Type: audit.ByUser, ID: "1", Email: "nurse@vigil.test", Role: "nurse"}, now)
					return err
				},
				func(tx core.App) error {
					if err := audit.Append(tx, audit.Entry{Event: audit.Login, Actor: audit.System()}, now); err != nil || !fails {
						return err
					}
					return errWork
				},
			}
			var callers sync.WaitGroup
			callers.Go(func() {
				err := async.JoinTx(app, func(core.App) error { once.Do(func() { close(began) }); <-gate; return nil })
				if err != nil {
					t.Error(err)
				}
			})
			<-began
			errs := make([]error, len(works))
			for i, work := range works {
				callers.Go(func() { errs[i] = async.JoinTx(app, work) })
			}
			for i := range 3 {
				callers.Go(func() {
					if _, err := w.Submit(t.Context(), gatewaySubmission(patient, at(bloodPressure(150, 80), now.Add(time.Duration(-i)*time.Minute)))); err != nil {
						t.Error(err)
					}
				})
			}
			for w.QueueDepth() < len(works)+3 {
				time.Sleep(time.Millisecond)
			}
			close(gate)
			callers.Wait()
			if errs[0] != nil || errors.Is(errs[1], errWork) != fails {
				t.Errorf("notified %v", errs)
			}
			snapshots, differences, err := w.VerifyCache(app, now)
			if err != nil || differences != "" || snapshots == 0 && !fails {
				t.Errorf("remembers %d pictures: %v\n%s", snapshots, err, differences)
			}
			for what, count := range map[string]int{"observations": 4, "snoozes": 1} {
				if total, err := app.CountRecords(what); err != nil || int(total) != count {
					t.Errorf("%d %s (%v)", total, what, err)
				}
			}
			if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
				t.Errorf("the audit trail: %+v (%v)", result, err)
			}
		})
	}
}
