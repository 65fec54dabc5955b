package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// The audit trail is asked for by e-mail address; most entries, those of gateways, have none.
func init() {
	step("1767225795_audit_by_email.go", func(app core.App) error {
		trail, err := app.FindCollectionByNameOrId("audit_log")
		if err != nil {
			return fmt.Errorf("find audit_log: %w", err)
		}
		trail.AddIndex("idx_audit_log_email", false, "actor_email, id", "actor_email != ''")
		if err := app.Save(trail); err != nil {
			return fmt.Errorf("index of e-mail addresses: %w", err)
		}
		return nil
	})
}
