package transmissions

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// NextRetry is when the first of the failed transmissions is to be sent again, or was to be; zero when there is none.
func NextRetry(app core.App) (time.Time, error) {
	var next string
	err := app.DB().NewQuery(`SELECT COALESCE(MIN(next_retry_at), '') FROM transmissions WHERE ` + retrying).Row(&next)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the next retry: %w", err)
	}
	return collections.ParseInstant(next), nil
}

// OldestPending is when the pending transmission that waits longest was queued; zero when none waits.
func OldestPending(app core.App) (time.Time, error) {
	var oldest string
	err := app.DB().NewQuery(`SELECT COALESCE(MIN(created_at), '') FROM transmissions WHERE ` + waiting).Row(&oldest)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the oldest pending transmission: %w", err)
	}
	return collections.ParseInstant(oldest), nil
}
