package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// The queue of transmissions gets one small index for each question the worker asks: what waits, oldest first; what is
// to be sent again, soonest first; what has been under way for too long. With the single index before, every claim
// sorted the whole backlog.
func init() {
	step("1767225730_transmission_queue.go", func(app core.App) error {
		collection, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return fmt.Errorf("find transmissions: %w", err)
		}
		collection.RemoveIndex("idx_transmissions_due")
		queue := &table{Collection: collection}
		return queue.
			index("waiting", false, "created_at, id", "status = 'pending'").
			index("retrying", false, "next_retry_at", "status = 'failed' AND next_retry_at != ''").
			index("processing", false, "claimed_at", "status = 'processing'").
			save(app)
	})
}
