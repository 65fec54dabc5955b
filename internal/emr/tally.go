package emr

import (
	"errors"
	"sync"
)

// tally collects the results of one round.
type tally struct {
	mu    sync.Mutex
	round SendCounts
	errs  []error
}

func (t *tally) add(s Result, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(err, ErrLeaseExpired): // another worker has the delivery and counts it
	case err != nil:
		t.errs = append(t.errs, err)
	case s.Blocked:
		t.round.Skipped++
	case s.Failed():
		t.round.Failed++
		if len(t.round.Failures) < maxFailures {
			t.round.Failures = append(t.round.Failures, s)
		}
	default:
		t.round.Succeeded++
	}
}

// hasErrors reports whether the database failed: sending more would only leave more deliveries with an unknown outcome.
func (t *tally) hasErrors() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.errs) > 0
}
