package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// machineClock is the time since the machine's start. Unlike Go's monotonic clock it also counts while the machine sleeps.
func machineClock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("the kernel has no boot-time clock: " + err.Error()) // since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}
