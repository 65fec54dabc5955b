package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// A failed delivery says whether the line to the EMR was at fault: then it is sent as soon as the line is back, whenever its retry was due.
func init() {
	step("1767225951_line.go", func(app core.App) error {
		transmissions, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return fmt.Errorf("find transmissions: %w", err)
		}
		return (&table{Collection: transmissions}).with(flag("waits_for_line", "The line to the EMR was at fault: sent as soon as it is back.")).save(app)
	})
}
