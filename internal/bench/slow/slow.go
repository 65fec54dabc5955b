// Package slow makes every commit of a database of records take longer, as a slower disk would. The benchmark uses it on
// both sides of a comparison; no release contains it.
package slow

import (
	"strings"
	"time"

	"modernc.org/sqlite"
)

// Setting is the environment variable with the time added to each commit, such as "1ms".
const Setting = "BENCH_COMMIT_DELAY"

// Commits adds a delay to each commit of connections opened from now on. Nothing is added for text that is no duration.
func Commits(text string) {
	delay, err := time.ParseDuration(text)
	if err != nil || delay <= 0 {
		return
	}
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, name string) error {
		if hooks, ok := conn.(sqlite.HookRegisterer); ok && strings.Contains(name, "data.db") {
			hooks.RegisterCommitHook(func() int32 {
				time.Sleep(delay)
				return 0
			})
		}
		return nil
	})
}
