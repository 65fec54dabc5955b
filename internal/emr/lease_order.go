package emr

import (
	"context"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// maxOrdered bounds the deliveries that a round orders at once.
const maxOrdered = 512

type queuedDelivery = collections.QueuedTransmission

// trigger is what started a round.
type trigger int

const (
	byWakeUp trigger = iota // a wake-up or the sweep
	byPerson                // a person's request: one trial is sent even while the circuit breaker is open, if a delivery is due
	byProbe                 // many failed probes
)

// orderedLeases leases queued deliveries in order of measurement, one per patient at a time.
type orderedLeases struct {
	trigger trigger
	began   time.Time
	waiting []queuedDelivery
}

// leaseNext leases up to most deliveries. busy reports that the queued ones must wait for deliveries under way.
func (w *Worker) leaseNext(app core.App, s *orderedLeases, most int) (leased []Leased, busy bool, err error) {
	if !w.breaker.isInOrder() {
		leased, err = w.leaseQueued(app, func(app core.App) ([]Leased, error) { return Lease(app, most, s.began, w.Clock()) })
		return leased, false, err
	}
	w.orderMu.Lock()
	defer w.orderMu.Unlock()
	for len(leased) == 0 && err == nil {
		isTrial := !w.breaker.isClosed()
		if len(s.waiting) == 0 || isTrial {
			s.waiting, err = collections.QueuedTransmissions(app, s.trigger == byPerson && w.breaker.isOpen(), s.began, w.Clock(), maxOrdered)
		}
		if len(s.waiting) == 0 || err != nil {
			return nil, false, err
		}
		if isTrial {
			i := w.breaker.pickTrial(s.waiting, s.trigger == byProbe)
			s.waiting = s.waiting[i : i+1]
		}
		ids := w.pickOnePerPatient(s, most)
		if len(ids) == 0 {
			return nil, true, nil
		}
		leased, err = w.leaseQueued(app, func(app core.App) ([]Leased, error) { return leaseNamed(app, ids, w.Clock()) })
		if len(leased) == 0 && isTrial { // another round leased it
			return nil, true, err
		}
	}
	return leased, false, err
}

// leaseQueued leases after it made readings wait that were stored since the round began, where the EMR does not take them one by one.
func (w *Worker) leaseQueued(app core.App, take func(app core.App) ([]Leased, error)) ([]Leased, error) {
	return w.lease(func() (leased []Leased, err error) {
		if w.EMR.TakesReadings() {
			return take(app)
		}
		err = app.RunInTransaction(func(tx core.App) (err error) {
			if err = collections.SuspendReadings(tx, w.Clock()); err == nil {
				leased, err = take(tx)
			}
			return err
		})
		return leased, err
	})
}

// pickOnePerPatient takes the first delivery of each patient without one under way.
func (w *Worker) pickOnePerPatient(s *orderedLeases, most int) (ids []string) {
	busy := map[string]bool{}
	w.leases.Range(func(_, patient any) bool { busy[patient.(string)] = true; return true })
	s.waiting = slices.DeleteFunc(s.waiting, func(r queuedDelivery) bool {
		if len(ids) == most || busy[r.PatientID] {
			return false
		}
		busy[r.PatientID] = true
		ids = append(ids, r.ID)
		return true
	})
	return ids
}

// leaseNamed leases those of the deliveries that are still queued.
func leaseNamed(app core.App, ids []string, now time.Time) (leased []Leased, err error) {
	return leaseBy(app, now, func(tx core.App) ([]Leased, error) { return collections.LeaseQueuedTransmissions(tx, ids, now) })
}

// pause waits until a delivery ends, or for retryPause: the one under way may belong to another round.
func pause(ctx context.Context, ended <-chan struct{}) {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}
