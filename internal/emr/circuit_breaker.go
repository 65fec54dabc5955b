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
	// maxProbeDelay bounds how long one Retry-After of the EMR can delay the next probe.
	maxProbeDelay = 15 * time.Minute
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
	toEMR       bool // the record uses up no attempt after its first
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

func newCircuitBreaker(interval time.Duration, spread func() float64, log *slog.Logger) *circuitBreaker {
	return &circuitBreaker{interval: interval, spread: spread, log: log, triedPatients: map[string]bool{}, failingPatients: map[string]bool{}, lastFault: map[string]time.Time{}}
}

// capacity returns how many deliveries may start now. With force one trial may start while the breaker is open.
func (b *circuitBreaker) capacity(force bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.state == breakerClosed:
		return maxInflight
	case b.state == breakerHalfOpen, force:
		return 1
	}
	return 0
}

func (b *circuitBreaker) isOpen() bool { return b.capacity(false) == 0 }

// isClosed reports whether deliveries are sent without restriction.
func (b *circuitBreaker) isClosed() bool { return b.capacity(false) > 1 }

// isInOrder reports whether deliveries are sent in order of measurement.
func (b *circuitBreaker) isInOrder() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inOrderMode || b.state != breakerClosed
}

// untilProbe returns the wait until the next probe; 0 when the breaker is not open, or a probe is due.
func (b *circuitBreaker) untilProbe(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != breakerOpen {
		return 0
	}
	return max(0, b.nextProbe.Sub(now))
}

// restoreOpen opens the breaker when an earlier process left deliveries that wait for the EMR, and schedules a probe at once.
func (b *circuitBreaker) restoreOpen(stalled bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inOrderMode = true
	switch {
	case stalled && b.state == breakerClosed:
		b.state, b.openedAt, b.nextProbe, b.reason = breakerOpen, now, now, "EMR unavailable"
	case !stalled && !b.outageSince.IsZero():
		b.recoveredAt = now
	}
}

// setOutageStart sets when the outage began.
func (b *circuitBreaker) setOutageStart(since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outageSince = since
}

// trip opens the breaker and schedules the next probe, no earlier than the EMR's Retry-After.
func (b *circuitBreaker) trip(failure *Error, now time.Time) {
	b.reason, b.rateLimited, b.inOrderMode = failure.Message, failure.Class() == ClassRateLimited, true
	hold := min(failure.RetryAfter, maxProbeDelay)
	if b.state == breakerHalfOpen { // the probe succeeded and the trial failed
		hold = max(hold, b.interval<<min(b.failedTrials, maxDoublings))
		b.failedTrials++
	}
	b.scheduleProbe(hold, now)
	if b.state == breakerOpen {
		return
	}
	if b.state == breakerClosed && b.outageSince.IsZero() {
		b.outageSince = now
		b.log.Warn("circuit breaker opened: the EMR fails, deliveries wait for a successful probe", slog.String("because", b.reason))
	}
	b.state, b.openedAt = breakerOpen, now
}

func (b *circuitBreaker) scheduleProbe(hold time.Duration, now time.Time) {
	interval := time.Duration(float64(b.interval) * (1 + probeSpread*b.spread()))
	b.nextProbe = now.Add(max(interval, hold))
}

// probeDone records the result of a probe of an open breaker. A success makes it half-open; sendTrial is true after every
// probesPerTrial failures, although the EMR failed the probe.
func (b *circuitBreaker) probeDone(err error, now time.Time) (sendTrial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	failure, _ := errors.AsType[*Error](err)
	switch {
	case b.state != breakerOpen:
		return false
	case err == nil:
		b.state, b.recoveredAt, b.failedProbes = breakerHalfOpen, now, 0
		return false
	}
	b.failedProbes++
	if failure != nil {
		b.trip(failure, now)
	}
	return b.failedProbes%probesPerTrial == 0
}

// recordSuccess records that the EMR accepted a delivery, or answered about it; closed is true when this closed the breaker. A delivery
// that began before the breaker opened is ignored.
func (b *circuitBreaker) recordSuccess(id string, began, now time.Time) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lastFault, id)
	if b.state == breakerOpen && began.Before(b.openedAt) {
		return false
	}
	b.lastSuccess, b.failedProbes, b.failedTrials = now, 0, 0
	clear(b.failingPatients)
	clear(b.triedPatients)
	if b.state == breakerClosed {
		return false
	}
	if b.state == breakerOpen {
		b.recoveredAt = now
	}
	b.state = breakerClosed
	b.log.Info("circuit breaker closed: the EMR accepts deliveries, the backlog is sent", slog.Duration("after", now.Sub(b.outageSince)))
	return true
}

// attributeWithoutProbe attributes the failures that need no probe: those while the breaker was open, and 429 responses.
func (b *circuitBreaker) attributeWithoutProbe(c Leased, d deliveryOutcome, now time.Time) (v attribution, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	isTrial := b.wasTrial(d)
	switch isRateLimited := d.err.Class() == ClassRateLimited; {
	case b.state == breakerOpen && !isRateLimited:
		if until := now.Add(min(d.err.RetryAfter, maxProbeDelay)); until.After(b.nextProbe) {
			b.nextProbe = until
		}
		return b.attributeToEMR(c, isTrial, true, now), true
	case b.recoveredAt.After(d.startedAt): // the delivery began during the outage
		b.inOrderMode = true
		return b.attributeToEMR(c, isTrial, true, now), true
	case isRateLimited:
		failsAlone := b.failsAlone(c)
		b.trip(d.err, now)
		return b.attributeToEMR(c, isTrial, !failsAlone, now), true
	case c.AttemptCount == 0, c.WaitsForEMR: // the record itself has had no failure
		b.failingPatients[c.PatientID] = true
	}
	return v, false
}

// wasTrial reports whether a delivery was a trial.
func (b *circuitBreaker) wasTrial(d deliveryOutcome) bool {
	return b.state != breakerClosed && d.startedAt.After(b.openedAt)
}

// failsAlone reports whether other deliveries succeeded since the EMR last failed this one.
func (b *circuitBreaker) failsAlone(c Leased) bool {
	at, ok := b.lastFault[c.ID]
	return ok && b.lastSuccess.After(at)
}

// attributeToEMR records that the EMR failed a delivery.
func (b *circuitBreaker) attributeToEMR(c Leased, isTrial, waits bool, now time.Time) attribution {
	b.lastFault[c.ID] = now
	if isTrial {
		b.triedPatients[c.PatientID] = true
	}
	return attribution{toEMR: true, waitsForEMR: waits}
}

// attributeAfterProbe decides between EMR and record, given a probe that began after the failure.
func (b *circuitBreaker) attributeAfterProbe(c Leased, d deliveryOutcome, probeErr error, now time.Time) attribution {
	b.mu.Lock()
	defer b.mu.Unlock()
	isTrial := b.wasTrial(d)
	switch {
	case b.state == breakerOpen:
		return b.attributeToEMR(c, isTrial, true, now)
	case probeErr != nil:
		b.trip(d.err, now)
		clear(b.failingPatients)
		return b.attributeToEMR(c, isTrial, true, now)
	case b.failsAlone(c), b.lastSuccess.After(d.firstFailure()):
		delete(b.failingPatients, c.PatientID) // the failure is the record's own
	case len(b.failingPatients) >= minFailingPatients: // no delivery succeeds, although probes do
		b.trip(d.err, now)
		return b.attributeToEMR(c, isTrial, true, now)
	}
	if d.err.Class() == ClassSignIn {
		return attribution{toEMR: true} // never the record's fault, but no reason to stop other deliveries
	}
	delete(b.lastFault, c.ID)
	return attribution{}
}

// pickTrial returns the index of the next trial: the first delivery of a patient without a failed trial, so that one bad record cannot
// block recovery. retriesOnly prefers deliveries with an earlier attempt.
func (b *circuitBreaker) pickTrial(waiting []queuedDelivery, retriesOnly bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !retriesOnly && b.failedTrials > 0 && b.failedTrials%trialsPerNewest == 0 {
		for i, r := range slices.Backward(waiting) {
			if !r.Tried {
				return i
			}
		}
		return b.failedTrials / trialsPerNewest % len(waiting)
	}
	for range 2 {
		if i := slices.IndexFunc(waiting, func(r queuedDelivery) bool { return !b.triedPatients[r.PatientID] && (r.Tried || !retriesOnly) }); i >= 0 {
			return i
		}
		clear(b.triedPatients)
	}
	return 0
}

// joinProbe returns the running probe, else the last one if it began no earlier than after, else a new one; isOwner is true for a new one,
// which the caller must run.
func (b *circuitBreaker) joinProbe(after, now time.Time) (p *probe, isOwner bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.probe; p != nil {
		select {
		case <-p.done:
			if !p.began.Before(after) {
				return p, false
			}
		default:
			return p, false
		}
	}
	b.probe = &probe{began: now, done: make(chan struct{})}
	return b.probe, true
}

// probeFinished returns a channel that is closed while no probe is running.
func (b *circuitBreaker) probeFinished() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.probe != nil {
		return b.probe.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// outage is a copy of the current outage for announcements.
type outage struct {
	since, recoveredAt time.Time
	reason             string
	notified           bool
}

// currentOutage returns the current outage; ok is false when there is none.
func (b *circuitBreaker) currentOutage() (o outage, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return outage{b.outageSince, b.recoveredAt, b.reason, b.notified}, !b.outageSince.IsZero()
}

// setNotified records that administrators were notified of an outage since a time.
func (b *circuitBreaker) setNotified(since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outageSince, b.notified = since, true
}

// reset ends the outage: the backlog is delivered.
func (b *circuitBreaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, b.outageSince, b.notified, b.inOrderMode, b.failedTrials = breakerClosed, time.Time{}, false, false, 0
	clear(b.triedPatients)
	maps.DeleteFunc(b.lastFault, func(_ string, at time.Time) bool { return at.Before(b.recoveredAt) })
}
