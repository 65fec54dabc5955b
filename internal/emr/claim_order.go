package emr

import (
	"context"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// mostOrdered bounds how many a round puts in order at once, whatever waits.
const mostOrdered = 512

type waitingRecord = collections.QueuedTransmission

// manner is who has a round sent.
type manner int

const (
	woken  manner = iota // the service itself
	asked                // a person: one record is tried even while the line is down, if it is due
	tested               // the service, after many probes in vain
)

// sequence hands out what waits in order of measurement, one of a patient at a time.
type sequence struct {
	manner
	began   time.Time
	waiting []waitingRecord
}

// next claims up to most records. busy says that what waits must wait for what is under way.
func (w *Worker) next(app core.App, s *sequence, most int) (claimed []Claimed, busy bool, err error) {
	if !w.line.inOrder() {
		claimed, err = w.claim(func() ([]Claimed, error) { return Claim(app, most, s.began, w.Clock()) })
		return claimed, false, err
	}
	w.ordering.Lock()
	defer w.ordering.Unlock()
	for len(claimed) == 0 && err == nil {
		single := !w.line.proven()
		if len(s.waiting) == 0 || single {
			s.waiting, err = collections.QueuedTransmissions(app, s.manner == asked && w.line.isDown(), s.began, w.Clock(), mostOrdered)
		}
		if len(s.waiting) == 0 || err != nil {
			return nil, false, err
		}
		if single {
			i := w.line.choose(s.waiting, s.manner == tested)
			s.waiting = s.waiting[i : i+1]
		}
		ids := w.pick(s, most)
		if len(ids) == 0 {
			return nil, true, nil
		}
		claimed, err = w.claim(func() ([]Claimed, error) { return claimNamed(app, ids, w.Clock()) })
		if len(claimed) == 0 && single { // somebody else has it
			return nil, true, err
		}
	}
	return claimed, false, err
}

// pick takes the first of each patient of whom nothing is under way.
func (w *Worker) pick(s *sequence, most int) (ids []string) {
	busy := map[string]bool{}
	w.own.Range(func(_, patient any) bool { busy[patient.(string)] = true; return true })
	s.waiting = slices.DeleteFunc(s.waiting, func(r waitingRecord) bool {
		if len(ids) == most || busy[r.PatientID] {
			return false
		}
		busy[r.PatientID] = true
		ids = append(ids, r.ID)
		return true
	})
	return ids
}

// claimNamed claims the named records as far as they still wait.
func claimNamed(app core.App, ids []string, now time.Time) (claimed []Claimed, err error) {
	return claimBy(app, now, func(tx core.App) ([]Claimed, error) { return collections.ClaimQueuedTransmissions(tx, ids, now) })
}

// pause waits until something under way has ended, or a moment: what is under way may be another round's.
func pause(ctx context.Context, ended <-chan struct{}) {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}
