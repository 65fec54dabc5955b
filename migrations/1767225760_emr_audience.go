package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Tokens are good for one EMR and client only: after a change of settings they must not be sent to another.
func init() {
	step("1767225760_emr_audience.go", func(app core.App) error {
		tokens, err := app.FindCollectionByNameOrId("emr_tokens")
		if err != nil {
			return fmt.Errorf("find emr_tokens: %w", err)
		}
		tokens.Fields.Add(text("audience", 64, "Hash of EMR and client."))
		return app.Save(tokens)
	})
}
