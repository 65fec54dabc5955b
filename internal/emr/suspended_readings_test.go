package emr_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
)

func (e *stubEMR) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// An outage ends although the EMR receives no readings by then, also after a restart, and readings are sent once it receives them.
func TestOutageEndsWithoutWay(t *testing.T) {
	for name, isRestarted := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			app := newApp(t)
			id, _ := queueDelivery(t, app, patient, now)
			synctest.Test(t, func(t *testing.T) {
				f := newEMR()
				f.refuse, f.probeErr = func(string, int) *emr.Error { return unavailable() }, unavailable()
				start := func() (w *emr.Worker, stop func()) {
					w = newWorker(f, nil, func(o *emr.WorkerOptions) { o.Clock, o.Log = time.Now, slog.New(slog.DiscardHandler) })
					ctx, cancel := context.WithCancel(t.Context())
					var group sync.WaitGroup
					group.Go(func() { w.Run(ctx, app) })
					return w, func() { cancel(); group.Wait() }
				}
				w, stop := start()
				time.Sleep(time.Minute)
				if _, isDown := w.Outage(); !isDown {
					t.Fatal("no outage")
				}
				f.set(func() { f.receivesNothing = true })
				if isRestarted {
					stop()
					w, stop = start()
				}
				time.Sleep(time.Hour)
				if _, isDown := w.Outage(); !isDown || f.sends[id] > 1 {
					t.Fatal("the outage ended although the EMR does not answer")
				}
				f.set(func() { f.refuse, f.probeErr = nil, nil })
				time.Sleep(time.Minute)
				if _, isDown := w.Outage(); isDown {
					t.Error("the outage lasts although the EMR answers")
				}
				check(t, app, collections.Transmissions, id, map[string]any{"status": "failed"})
				f.set(func() { f.receivesNothing = false })
				if _, err := w.Sweep(t.Context(), app); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				stop()
				check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted"})
			})
		})
	}
}
