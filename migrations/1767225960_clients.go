package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Machines with credentials of their own, and that the audit trail names them.
func init() {
	step("1767225960_clients.go", func(app core.App) error {
		trail, err := app.FindCollectionByNameOrId("audit_log")
		if err != nil {
			return fmt.Errorf("find audit_log: %w", err)
		}
		actors, ok := trail.Fields.GetByName("actor_type").(*core.SelectField)
		if !ok {
			return fmt.Errorf("audit_log has no types of actors")
		}
		actors.Values = []string{"user", "superuser", "system", "gateway", "emr", "client", "anonymous"}
		return saveAll(app,
			(&table{Collection: trail}).with(text("actor_name", 100, "Of a client, as it was called then.")),
			clients(),
		)
	})
}

func clients() *table {
	return newTable("clients").withUUID().with(
		&core.TextField{Name: "name", Max: 100, Required: true, Presentable: true},
		structured("scopes", "What the client may be allowed."),
		text("jwks_url", 2048, "Where the client's public keys are read."),
		structured("jwks", "The client's public keys, when they are not read from anywhere."),
		structured("allowed_cidrs", "Ranges of addresses from which the client is let in; empty for any."),
		flag("active", ""),
		&core.TextField{Name: "secret_hash", Max: 64, Required: true, Hidden: true, Help: "SHA-256 of the secret, which is random."},
		&core.TextField{Name: "token_key", Max: 64, Required: true, Hidden: true, Help: "What its access tokens are signed with, among others: another one ends them."},
		instant("created_at", ""),
		instant("updated_at", ""),
		instant("last_used_at", "To the minute."),
	).index("created", false, "created_at, id", "")
}
