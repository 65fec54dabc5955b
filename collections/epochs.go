package collections

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ErrEpoch refuses an epoch that does not follow the newest one of the database.
var ErrEpoch = errors.New("the epoch is not later than the database's newest: the store of the lease was made again")

// NewestEpoch returns the newest epoch in which the database was written; 0 without a lease.
func NewestEpoch(app core.App) (uint64, error) {
	id, err := queryValue[string](app, "find the newest epoch", "SELECT COALESCE(MAX(id), '0') FROM epochs", nil)
	if err != nil {
		return 0, err
	}
	epoch, err := strconv.ParseUint(id, 10, 64)
	return epoch, wrap(err, "read the newest epoch")
}

// BeginEpoch records that a node writes from now on, unless the epoch already began: it then continues after a restart. Epochs only grow
// ([ErrEpoch]).
func BeginEpoch(app core.App, epoch uint64, node string, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		newest, err := NewestEpoch(tx)
		switch {
		case err != nil || newest == epoch:
			return err
		case newest > epoch:
			return ErrEpoch
		}
		last, err := queryValue[string](tx, "find the last audit entry", "SELECT COALESCE(MAX(id), '') FROM audit_log", nil)
		if err != nil {
			return err
		}
		return insert(tx, "begin an epoch", Epochs, dbx.Params{
			"id": fmt.Sprintf("%020d", epoch), "node": node, "first_audit_id": NumberID(Number(last) + 1), "started_at": FormatInstant(now),
		})
	})
}
