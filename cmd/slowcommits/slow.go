// Package slowcommits delays every commit of a database of records, to simulate a slower disk. The benchmark uses it on both sides of a comparison;
// no release contains it.
package slowcommits

import (
	"strings"
	"time"
)

// Setting is the environment variable with the time added to each commit, such as "1ms".
const Setting = "BENCH_COMMIT_DELAY"

// Delay adds a delay to each commit of connections opened later. A text that is not a positive duration adds none.
func Delay(text string) {
	if delay, err := time.ParseDuration(text); err == nil && delay > 0 {
		hook(delay)
	}
}

// ofRecords reports whether a connection is to a database of records.
func ofRecords(name string) bool { return strings.Contains(name, "data.db") }
