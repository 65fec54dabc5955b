//go:build !(sqlite_in_c && cgo)

package slowcommits

import (
	"time"

	"modernc.org/sqlite"
)

func hook(delay time.Duration) {
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, name string) error {
		if hooks, ok := conn.(sqlite.HookRegisterer); ok && ofRecords(name) {
			hooks.RegisterCommitHook(func() int32 {
				time.Sleep(delay)
				return 0
			})
		}
		return nil
	})
}
