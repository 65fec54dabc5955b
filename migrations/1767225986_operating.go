package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Backups that were taken and proven; who signs in through the practice's identity provider, and what that proved.
func init() {
	step("1767225986_operating.go", func(app core.App) error {
		refresh, err := app.FindCollectionByNameOrId("refresh_tokens")
		if err != nil {
			return fmt.Errorf("find refresh_tokens: %w", err)
		}
		return saveAll(app,
			newTable("backups").with(
				requiredText("name", 100, "Of the file."),
				instant("taken_at", "Empty when it was not taken by this database's own service."),
				instant("verified_at", "When it was last proven to be good; empty when never."),
			).
				index("name", true, "name", "").
				index("taken", false, "taken_at", "").
				index("verified", false, "verified_at", ""),
			newTable("identities").with(
				relation(app, "user", "users", true, ""),
				requiredText("issuer", 500, "The identity provider."),
				requiredText("subject", 255, "Whom the provider calls so, for good."),
				instant("created_at", ""),
				instant("last_used_at", ""),
			).
				index("subject", true, "issuer, subject", "").
				index("user", false, "user", ""),
			(&table{Collection: refresh}).with(flag("second_factor", "The identity provider asked for a second factor at the sign-in.")),
		)
	})
}
