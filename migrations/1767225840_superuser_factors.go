package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Superusers of the dashboard have a second factor of their own.
func init() {
	step("1767225840_superuser_factors.go", func(app core.App) error {
		superusers, err := app.FindCollectionByNameOrId(core.CollectionNameSuperusers)
		if err != nil {
			return fmt.Errorf("find superusers: %w", err)
		}
		t := (&table{Collection: superusers}).
			with(&core.BoolField{Name: "two_factor_enabled", Hidden: true}).
			phi("totp_secret", 64, "Base 32.").
			with(&core.NumberField{Name: "totp_last_step", OnlyInt: true, Hidden: true, Help: "The last time step of which a code was accepted."})
		if t.err == nil {
			superusers.Fields.GetByName("totp_secret").SetHidden(true)
		}
		return t.save(app)
	})
}
