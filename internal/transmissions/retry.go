package transmissions

import "time"

// MaxAttempts is the number of automatic retries; the first send takes no slot of its own.
// Source: docs/decisions/transmissions.md, "Attempts versus delays".
const MaxAttempts = 5

// Schedule holds the waits before the five automatic retries.
type Schedule []time.Duration

// jitter spreads retries by a tenth either way, so that an outage's backlog does not return in one wave.
const jitter = 0.1

// Next says when to try again after another failure. failures counts the slots used before it; spread is drawn evenly
// from [-1, 1]. ok is false when no slot is left and a person must look.
func (s Schedule) Next(failures int, at time.Time, spread float64) (next time.Time, ok bool) {
	if failures < 0 || failures >= len(s) {
		return time.Time{}, false
	}
	wait := s[failures]
	return at.Add(wait + time.Duration(spread*jitter*float64(wait))), true
}
