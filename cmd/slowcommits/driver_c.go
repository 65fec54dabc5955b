//go:build sqlite_in_c && cgo

package slowcommits

import (
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

func hook(delay time.Duration) {
	sqlite.OnConnect = func(name string, conn *sqlite3.SQLiteConn) {
		if ofRecords(name) {
			conn.RegisterCommitHook(func() int {
				time.Sleep(delay)
				return 0
			})
		}
	}
}
