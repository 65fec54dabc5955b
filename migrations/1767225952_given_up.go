package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Small indexes for what people ask of deliveries that failed: those that were given up, newest first, and those of one error. What was entered
// in error before it left was never given up.
func init() {
	step("1767225952_given_up.go", func(app core.App) error {
		transmissions, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return fmt.Errorf("find transmissions: %w", err)
		}
		return (&table{Collection: transmissions}).
			index("given_up", false, "created_at, id, patient", "status = 'failed' AND next_retry_at = '' AND error_code != 'entered_in_error'").
			index("error", false, "error_code, created_at, id", "error_code != ''").
			save(app)
	})
}
