//go:build !linux

package lease

import "time"

var started = time.Now().Add(-time.Second)

// machineClock is Go's monotonic clock. It may not count while the machine sleeps, so that a machine that sleeps must not
// serve with a lease.
func machineClock() time.Duration { return time.Since(started) }
