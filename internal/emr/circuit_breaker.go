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
	// probeSpread is the share by which probes are spread either way, so that the practices of one EMR do not ask it all at once.
	probeSpread = 0.2
	// longestHold bounds for how long the EMR can have the line left alone by one answer.
	longestHold = 15 * time.Minute
	// fewSay is of how many patients records must fail, with none that passes, for their failures to be the line's though the EMR answers a probe.
	fewSay = 3
	// mostDoublings bounds how often the wait doubles while the EMR answers probes and takes no record.
	mostDoublings = 2
	// probesPerTry is how many probes may fail before a record is tried all the same: an EMR may take readings and not say what it can do.
	probesPerTry = 60
	// triesPerTurn is how many tries may fail before the newest that was never tried gets a turn: the oldest may all be at fault themselves.
	triesPerTurn = 10
)

// lineState is what is known of the way to the EMR.
type lineState int

const (
	lineUp   lineState = iota
	lineBack           // it seems to be back: one record goes ahead
	lineDown
)

// verdict is whose fault a failed delivery was. The zero verdict is the record's.
type verdict struct {
	line bool // the record takes no slot
	held bool // it is sent as soon as the line is back
}

// circuitBreaker is the way to the EMR as deliveries find it. It is kept in memory alone: what waits for the line says so itself.
// Source: docs/decisions/transmissions.md, "An outage".
type circuitBreaker struct {
	every  time.Duration
	spread func() float64
	log    *slog.Logger

	lock    sync.Mutex
	state   lineState
	since   time.Time // when the outage began; zero once all that waited is delivered
	fell    time.Time // when the line went down last
	back    time.Time // when it seemed to be back last
	because string    // the last of its faults
	paced   bool      // down only because the EMR asks to be asked less
	told    bool      // people know of the outage
	next    time.Time // when to probe
	missed  int       // probes in vain
	tries   int       // records tried in vain though the EMR answered a probe
	// turns are the patients of whom a record was tried in vain; failing are those of whom one failed since any passed.
	turns, failing map[string]bool
	passed         time.Time            // when a record passed last
	faults         map[string]time.Time // when the line failed a record last that has not passed since
	ordered        bool                 // what waits is sent in order of measurement, one of a patient at a time
	probe          *probe
}

// probe is one look at the EMR that many may wait for.
type probe struct {
	began time.Time
	done  chan struct{}
	err   error
}

func newCircuitBreaker(every time.Duration, spread func() float64, log *slog.Logger) *circuitBreaker {
	return &circuitBreaker{every: every, spread: spread, log: log, turns: map[string]bool{}, failing: map[string]bool{}, faults: map[string]time.Time{}}
}

// room is how many records may leave now; whoever insists may try one while the line is down.
func (l *circuitBreaker) room(insist bool) int {
	l.lock.Lock()
	defer l.lock.Unlock()
	switch {
	case l.state == lineUp:
		return senders
	case l.state == lineBack, insist:
		return 1
	}
	return 0
}

func (l *circuitBreaker) isDown() bool { return l.room(false) == 0 }

// proven reports whether the line is known to take what is sent.
func (l *circuitBreaker) proven() bool { return l.room(false) > 1 }

// inOrder reports whether what waits is sent in order.
func (l *circuitBreaker) inOrder() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.ordered || l.state != lineUp
}

// untilProbe is how long the line is to be left alone; 0 when it is up, or to be probed now.
func (l *circuitBreaker) untilProbe(now time.Time) time.Duration {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.state != lineDown {
		return 0
	}
	return max(0, l.next.Sub(now))
}

// resume takes the line for down when an earlier process left records that wait for it, and looks at once; otherwise for up.
func (l *circuitBreaker) resume(stalled bool, now time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.ordered = true
	switch {
	case stalled && l.state == lineUp:
		l.state, l.fell, l.next, l.because = lineDown, now, now, "EMR unavailable"
	case !stalled && !l.since.IsZero():
		l.back = now
	}
}

// begin says since when the outage lasts.
func (l *circuitBreaker) begin(since time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.since = since
}

// fall takes the line for down. hold is how long the EMR asks to be left alone.
func (l *circuitBreaker) fall(why *Error, now time.Time) {
	l.because, l.paced, l.ordered = why.Message, why.Fault() == OfPace, true
	hold := min(why.RetryAfter, longestHold)
	if l.state == lineBack { // it answered a probe, and took nothing
		hold = max(hold, l.every<<min(l.tries, mostDoublings))
		l.tries++
	}
	l.wait(hold, now)
	if l.state == lineDown {
		return
	}
	if l.state == lineUp && l.since.IsZero() {
		l.since = now
		l.log.Warn("the EMR is down: deliveries wait", slog.String("because", l.because))
	}
	l.state, l.fell = lineDown, now
}

func (l *circuitBreaker) wait(hold time.Duration, now time.Time) {
	interval := time.Duration(float64(l.every) * (1 + probeSpread*l.spread()))
	l.next = now.Add(max(interval, hold))
}

// probed says how a probe of the line that was down ended: then one record goes ahead, also after many in vain.
func (l *circuitBreaker) probed(err error, now time.Time) (try bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	why, _ := errors.AsType[*Error](err)
	switch {
	case l.state != lineDown:
		return false
	case err == nil:
		l.state, l.back, l.missed = lineBack, now, 0
		return false
	}
	l.missed++
	if why != nil {
		l.fall(why, now)
	}
	return l.missed%probesPerTry == 0
}

// pass notes that the EMR took a record, or answered about it; opened when the line was not known to be up. What had left before the line went
// down says nothing of it now.
func (l *circuitBreaker) pass(id string, began, now time.Time) (opened bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.faults, id)
	if l.state == lineDown && began.Before(l.fell) {
		return false
	}
	l.passed, l.missed, l.tries = now, 0, 0
	clear(l.failing)
	clear(l.turns)
	if l.state == lineUp {
		return false
	}
	if l.state == lineDown {
		l.back = now
	}
	l.state = lineUp
	l.log.Info("the EMR is back: what waits is delivered", slog.Duration("after", now.Sub(l.since)))
	return true
}

// known judges what needs no probe: failures while the line was down, and the EMR's wish to be asked less.
func (l *circuitBreaker) known(c Claimed, d delivery, now time.Time) (v verdict, ok bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	try := l.wasTry(d)
	switch paced := d.err.Fault() == OfPace; {
	case l.state == lineDown && !paced:
		if until := now.Add(min(d.err.RetryAfter, longestHold)); until.After(l.next) {
			l.next = until
		}
		return l.blame(c, try, true, now), true
	case l.back.After(d.startedAt): // it left while the line was down
		l.ordered = true
		return l.blame(c, try, true, now), true
	case paced:
		alone := l.alone(c)
		l.fall(d.err, now)
		return l.blame(c, try, !alone, now), true
	case c.AttemptCount == 0, c.WaitsForEMR: // nothing has been found to be wrong with the record itself
		l.failing[c.PatientID] = true
	}
	return v, false
}

// wasTry reports whether a record was sent to see how the line is.
func (l *circuitBreaker) wasTry(d delivery) bool {
	return l.state != lineUp && d.startedAt.After(l.fell)
}

// alone reports whether others passed since the line failed this record last.
func (l *circuitBreaker) alone(c Claimed) bool {
	at, ok := l.faults[c.ID]
	return ok && l.passed.After(at)
}

// blame notes that the line failed a record.
func (l *circuitBreaker) blame(c Claimed, try, held bool, now time.Time) verdict {
	l.faults[c.ID] = now
	if try {
		l.turns[c.PatientID] = true
	}
	return verdict{line: true, held: held}
}

// judge says whose fault a failure is, after a probe that began when it was known.
func (l *circuitBreaker) judge(c Claimed, d delivery, probed error, now time.Time) verdict {
	l.lock.Lock()
	defer l.lock.Unlock()
	try := l.wasTry(d)
	switch {
	case l.state == lineDown:
		return l.blame(c, try, true, now)
	case probed != nil:
		l.fall(d.err, now)
		clear(l.failing)
		return l.blame(c, try, true, now)
	case l.alone(c), l.passed.After(d.firstFailure()):
		delete(l.failing, c.PatientID) // it says nothing of the line
	case len(l.failing) >= fewSay: // nothing passes, whatever the EMR says of itself
		l.fall(d.err, now)
		return l.blame(c, try, true, now)
	}
	if d.err.Fault() == OfSignIn {
		return verdict{line: true} // never the record's; but nobody else waits for it
	}
	delete(l.faults, c.ID)
	return verdict{}
}

// choose picks which record is tried while the line is not known to be up: the first, but one of another patient after one that was tried in
// vain, so that none stands in everybody's way. seasoned prefers what was tried already.
func (l *circuitBreaker) choose(waiting []waitingRecord, seasoned bool) int {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !seasoned && l.tries > 0 && l.tries%triesPerTurn == 0 {
		for i, r := range slices.Backward(waiting) {
			if !r.Tried {
				return i
			}
		}
		return l.tries / triesPerTurn % len(waiting)
	}
	for range 2 {
		if i := slices.IndexFunc(waiting, func(r waitingRecord) bool { return !l.turns[r.PatientID] && (r.Tried || !seasoned) }); i >= 0 {
			return i
		}
		clear(l.turns)
	}
	return 0
}

// look returns a probe that began no earlier than a time; mine when the caller is to make it.
func (l *circuitBreaker) look(after, now time.Time) (p *probe, mine bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
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

// looking is closed once nobody probes.
func (l *circuitBreaker) looking() <-chan struct{} {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.probe != nil {
		return l.probe.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// outage is one that people hear of.
type outage struct {
	since, back time.Time
	because     string
	told        bool
}

// current is the outage as it stands; ok is false while there is none.
func (l *circuitBreaker) current() (o outage, ok bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return outage{l.since, l.back, l.because, l.told}, !l.since.IsZero()
}

// tell notes that people know of the outage, and since when they were told it lasts.
func (l *circuitBreaker) tell(since time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.since, l.told = since, true
}

// rest ends the outage: nothing waits any more.
func (l *circuitBreaker) rest() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.state, l.since, l.told, l.ordered, l.tries = lineUp, time.Time{}, false, false, 0
	clear(l.turns)
	maps.DeleteFunc(l.faults, func(_ string, at time.Time) bool { return at.Before(l.back) })
}
