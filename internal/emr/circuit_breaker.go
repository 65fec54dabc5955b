package emr

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// probeSpread is the jitter of the probe interval, so that the practices of one EMR do not probe it at the same time.
	probeSpread = 0.2
	// maxHold bounds how long one Retry-After of the EMR can delay the next probe.
	maxHold = 15 * time.Minute
	// minFailingPatients: trip the breaker when deliveries of this many patients fail with no success between, even if a probe succeeds.
	minFailingPatients = 3
	// maxDoublings bounds how often the wait doubles while the EMR answers probes and accepts no delivery.
	maxDoublings = 2
	// probesPerTrial failed probes in a row are followed by one trial delivery: an EMR may accept readings and not serve /metadata.
	probesPerTrial = 60
	// trialsPerNewest failed trials are followed by one of the newest delivery without an attempt: the oldest may all be faulty themselves.
	trialsPerNewest = 10
)

// breakerState is the state of a circuit breaker.
type breakerState int

const (
	breakerClosed   breakerState = iota
	breakerHalfOpen              // a probe succeeded: one trial delivery is sent
	breakerOpen
)

// attribution is the cause of a failed delivery: the record (the zero value) or the EMR.
type attribution struct {
	toEMR       bool // the record does not use up an attempt
	waitsForEMR bool // it is sent as soon as the breaker closes
}

// circuitBreaker stops deliveries while the EMR fails, and decides whether a failure is the EMR's or the record's. It is kept in memory;
// deliveries that wait for the EMR are marked in the database. Source: docs/decisions/transmissions.md, "An outage".
type circuitBreaker struct {
	interval time.Duration
	spread   func() float64
	log      *slog.Logger

	mu           sync.Mutex
	state        breakerState
	outageSince  time.Time // zero once the backlog of the outage is delivered
	openedAt     time.Time
	recoveredAt  time.Time // when a probe or delivery last succeeded after an outage
	reason       string    // message of the last failure
	rateLimited  bool      // open only because of 429 responses
	notified     bool      // administrators have been notified of the outage
	nextProbe    time.Time
	failedProbes int
	failedTrials int // trial deliveries that failed although a probe succeeded
	// triedPatients are the patients with a failed trial; failingPatients those with a failure since the last success.
	triedPatients, failingPatients map[string]bool
	lastSuccess                    time.Time
	lastFault                      map[string]time.Time // by delivery: its last failure attributed to the EMR, with no success since
	inOrderMode                    bool                 // send in order of measurement, one delivery per patient at a time
	probe                          *probe
}

// probe is one probe of the EMR, which many callers may wait for.
type probe struct {
	began time.Time
	done  chan struct{}
	err   error
}

func newCircuitBreaker(every time.Duration, spread func() float64, log *slog.Logger) *circuitBreaker {
	return &circuitBreaker{interval: every, spread: spread, log: log, triedPatients: map[string]bool{}, failingPatients: map[string]bool{}, lastFault: map[string]time.Time{}}
}

// capacity returns how many deliveries may start now. With force one trial may start while the breaker is open.
func (l *circuitBreaker) capacity(force bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state == breakerClosed:
		return maxInflight
	case l.state == breakerHalfOpen, force:
		return 1
	}
	return 0
}

func (l *circuitBreaker) isOpen() bool { return l.capacity(false) == 0 }

// isClosed reports whether deliveries are sent without restriction.
func (l *circuitBreaker) isClosed() bool { return l.capacity(false) > 1 }

// isInOrder reports whether deliveries are sent in order of measurement.
func (l *circuitBreaker) isInOrder() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inOrderMode || l.state != breakerClosed
}

// untilProbe returns the wait until the next probe; 0 when the breaker is not open, or a probe is due.
func (l *circuitBreaker) untilProbe(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != breakerOpen {
		return 0
	}
	return max(0, l.nextProbe.Sub(now))
}

// resume opens the breaker when an earlier process left deliveries that wait for the EMR, and schedules a probe at once.
func (l *circuitBreaker) resume(stalled bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inOrderMode = true
	switch {
	case stalled && l.state == breakerClosed:
		l.state, l.openedAt, l.nextProbe, l.reason = breakerOpen, now, now, "EMR unavailable"
	case !stalled && !l.outageSince.IsZero():
		l.recoveredAt = now
	}
}

// setOutageStart sets when the outage began.
func (l *circuitBreaker) setOutageStart(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outageSince = since
}

// trip opens the breaker and schedules the next probe, no earlier than the EMR's Retry-After.
func (l *circuitBreaker) trip(why *Error, now time.Time) {
	l.reason, l.rateLimited, l.inOrderMode = why.Message, why.Class() == ClassRateLimited, true
	hold := min(why.RetryAfter, maxHold)
	if l.state == breakerHalfOpen { // the probe succeeded and the trial failed
		hold = max(hold, l.interval<<min(l.failedTrials, maxDoublings))
		l.failedTrials++
	}
	l.scheduleProbe(hold, now)
	if l.state == breakerOpen {
		return
	}
	if l.state == breakerClosed && l.outageSince.IsZero() {
		l.outageSince = now
		l.log.Warn("circuit breaker opened: the EMR fails, deliveries wait for a successful probe", slog.String("because", l.reason))
	}
	l.state, l.openedAt = breakerOpen, now
}

func (l *circuitBreaker) scheduleProbe(hold time.Duration, now time.Time) {
	interval := time.Duration(float64(l.interval) * (1 + probeSpread*l.spread()))
	l.nextProbe = now.Add(max(interval, hold))
}

// probeDone records the result of a probe of an open breaker. A success makes it half-open. try is true after every probesPerTrial
// failures: one trial delivery is sent anyway.
func (l *circuitBreaker) probeDone(err error, now time.Time) (try bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	why, _ := errors.AsType[*Error](err)
	switch {
	case l.state != breakerOpen:
		return false
	case err == nil:
		l.state, l.recoveredAt, l.failedProbes = breakerHalfOpen, now, 0
		return false
	}
	l.failedProbes++
	if why != nil {
		l.trip(why, now)
	}
	return l.failedProbes%probesPerTrial == 0
}

// recordSuccess records that the EMR accepted a delivery, or answered about it; opened is true when this closed the breaker. A delivery
// that began before the breaker opened is ignored.
func (l *circuitBreaker) recordSuccess(id string, began, now time.Time) (opened bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lastFault, id)
	if l.state == breakerOpen && began.Before(l.openedAt) {
		return false
	}
	l.lastSuccess, l.failedProbes, l.failedTrials = now, 0, 0
	clear(l.failingPatients)
	clear(l.triedPatients)
	if l.state == breakerClosed {
		return false
	}
	if l.state == breakerOpen {
		l.recoveredAt = now
	}
	l.state = breakerClosed
	l.log.Info("circuit breaker closed: the EMR accepts deliveries, the backlog is sent", slog.Duration("after", now.Sub(l.outageSince)))
	return true
}

// attributeWithoutProbe attributes the failures that need no probe: those while the breaker was open, and 429 responses.
func (l *circuitBreaker) attributeWithoutProbe(c Claimed, d delivery, now time.Time) (v attribution, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	try := l.wasTrial(d)
	switch paced := d.err.Class() == ClassRateLimited; {
	case l.state == breakerOpen && !paced:
		if until := now.Add(min(d.err.RetryAfter, maxHold)); until.After(l.nextProbe) {
			l.nextProbe = until
		}
		return l.attributeToEMR(c, try, true, now), true
	case l.recoveredAt.After(d.startedAt): // the delivery began during the outage
		l.inOrderMode = true
		return l.attributeToEMR(c, try, true, now), true
	case paced:
		alone := l.failsAlone(c)
		l.trip(d.err, now)
		return l.attributeToEMR(c, try, !alone, now), true
	case c.AttemptCount == 0, c.WaitsForEMR: // the record itself has had no failure
		l.failingPatients[c.PatientID] = true
	}
	return v, false
}

// wasTrial reports whether a delivery was a trial.
func (l *circuitBreaker) wasTrial(d delivery) bool {
	return l.state != breakerClosed && d.startedAt.After(l.openedAt)
}

// failsAlone reports whether other deliveries succeeded since the EMR last failed this one.
func (l *circuitBreaker) failsAlone(c Claimed) bool {
	at, ok := l.lastFault[c.ID]
	return ok && l.lastSuccess.After(at)
}

// attributeToEMR records that the EMR failed a delivery.
func (l *circuitBreaker) attributeToEMR(c Claimed, try, held bool, now time.Time) attribution {
	l.lastFault[c.ID] = now
	if try {
		l.triedPatients[c.PatientID] = true
	}
	return attribution{toEMR: true, waitsForEMR: held}
}

// attributeAfterProbe decides between EMR and record, given a probe that began after the failure.
func (l *circuitBreaker) attributeAfterProbe(c Claimed, d delivery, probed error, now time.Time) attribution {
	l.mu.Lock()
	defer l.mu.Unlock()
	try := l.wasTrial(d)
	switch {
	case l.state == breakerOpen:
		return l.attributeToEMR(c, try, true, now)
	case probed != nil:
		l.trip(d.err, now)
		clear(l.failingPatients)
		return l.attributeToEMR(c, try, true, now)
	case l.failsAlone(c), l.lastSuccess.After(d.firstFailure()):
		delete(l.failingPatients, c.PatientID) // the failure is the record's own
	case len(l.failingPatients) >= minFailingPatients: // no delivery succeeds, although probes do
		l.trip(d.err, now)
		return l.attributeToEMR(c, try, true, now)
	}
	if d.err.Class() == ClassSignIn {
		return attribution{toEMR: true} // never the record's fault, but no reason to stop other deliveries
	}
	delete(l.lastFault, c.ID)
	return attribution{}
}

// pickTrial returns the index of the next trial: the first delivery of a patient without a failed trial, so that one bad record cannot
// block recovery. seasoned prefers deliveries that have been attempted before.
func (l *circuitBreaker) pickTrial(waiting []queuedDelivery, seasoned bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !seasoned && l.failedTrials > 0 && l.failedTrials%trialsPerNewest == 0 {
		for i, r := range slices.Backward(waiting) {
			if !r.Tried {
				return i
			}
		}
		return l.failedTrials / trialsPerNewest % len(waiting)
	}
	for range 2 {
		if i := slices.IndexFunc(waiting, func(r queuedDelivery) bool { return !l.triedPatients[r.PatientID] && (r.Tried || !seasoned) }); i >= 0 {
			return i
		}
		clear(l.triedPatients)
	}
	return 0
}

// joinProbe returns a probe that began no earlier than after; mine is true when the caller must run it.
func (l *circuitBreaker) joinProbe(after, now time.Time) (p *probe, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.probe; p != nil {
		select {
		case <-p.done:
			if !p.began.Before(after) {
				return p, false
			}
		default:
			return p, false
		}
	}
	l.probe = &probe{began: now, done: make(chan struct{})}
	return l.probe, true
}

// probeFinished returns a channel that is closed while no probe is running.
func (l *circuitBreaker) probeFinished() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probe != nil {
		return l.probe.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// outage is an outage as announced.
type outage struct {
	since, recoveredAt time.Time
	reason             string
	notified           bool
}

// currentOutage returns the current outage; ok is false when there is none.
func (l *circuitBreaker) currentOutage() (o outage, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return outage{l.outageSince, l.recoveredAt, l.reason, l.notified}, !l.outageSince.IsZero()
}

// setNotified records that administrators were notified of an outage since a time.
func (l *circuitBreaker) setNotified(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outageSince, l.notified = since, true
}

// reset ends the outage: the backlog is delivered.
func (l *circuitBreaker) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.outageSince, l.notified, l.inOrderMode, l.failedTrials = breakerClosed, time.Time{}, false, false, 0
	clear(l.triedPatients)
	maps.DeleteFunc(l.lastFault, func(_ string, at time.Time) bool { return at.Before(l.recoveredAt) })
}
