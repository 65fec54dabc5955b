package emr

import (
	"time"
)

// MaxAttempts is the number of automatic retries; the first attempt is not counted.
// Source: docs/decisions/transmissions.md, "Attempts versus delays".
const MaxAttempts = 5

// Schedule holds the waits before the five automatic retries.
type Schedule []time.Duration

// jitter spreads retries by 10 % either way, so that an outage's backlog does not return all at once.
const jitter = 0.1

// Next returns when to retry after another failure. failures counts the retries used before it; spread is drawn evenly from [-1, 1].
// ok is false when no retry is left.
func (s Schedule) Next(failures int, at time.Time, spread float64) (next time.Time, ok bool) {
	if failures < 0 || failures >= len(s) {
		return time.Time{}, false
	}
	wait := s[failures]
	return at.Add(wait + time.Duration(spread*jitter*float64(wait))), true
}
