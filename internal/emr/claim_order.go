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

// orderedClaims claims queued deliveries in order of measurement, one per patient at a time.
type orderedClaims struct {
	trigger trigger
	began   time.Time
	waiting []queuedDelivery
}

// claimNext claims up to most deliveries. busy reports that the queued ones must wait for deliveries under way.
func (w *Worker) claimNext(app core.App, s *orderedClaims, most int) (claimed []Claimed, busy bool, err error) {
	if !w.breaker.isInOrder() {
		claimed, err = w.claim(func() ([]Claimed, error) { return Claim(app, most, s.began, w.Clock()) })
		return claimed, false, err
	}
	w.orderMu.Lock()
	defer w.orderMu.Unlock()
	for len(claimed) == 0 && err == nil {
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
		claimed, err = w.claim(func() ([]Claimed, error) { return claimNamed(app, ids, w.Clock()) })
		if len(claimed) == 0 && isTrial { // another round claimed it
			return nil, true, err
		}
	}
	return claimed, false, err
}

// pickOnePerPatient takes the first delivery of each patient without one under way.
func (w *Worker) pickOnePerPatient(s *orderedClaims, most int) (ids []string) {
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

// claimNamed claims those of the deliveries that are still queued.
func claimNamed(app core.App, ids []string, now time.Time) (claimed []Claimed, err error) {
	return claimBy(app, now, func(tx core.App) ([]Claimed, error) { return collections.ClaimQueuedTransmissions(tx, ids, now) })
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
