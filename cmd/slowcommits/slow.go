// Package slowcommits makes every commit of a database of records take longer, as a slower disk would. The benchmark uses it on
// both sides of a comparison; no release contains it.
package slowcommits

import (
	"strings"
	"time"
)

// Setting is the environment variable with the time added to each commit, such as "1ms".
const Setting = "BENCH_COMMIT_DELAY"

// Delay adds a delay to each commit of connections opened from now on. Nothing is added for text that is no duration.
func Delay(text string) {
	if delay, err := time.ParseDuration(text); err == nil && delay > 0 {
		hook(delay)
	}
}

// ofRecords reports whether a connection is to a database of records.
func ofRecords(name string) bool { return strings.Contains(name, "data.db") }
