package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
)

// guardUser writes addresses as sign-ins look for them, and dates what the dashboard makes and holds it to the password policy.
func (h *hooks) guardUser(e *core.RecordEvent) error {
	now := collections.Instant(h.Clock())
	e.Record.SetEmail(auth.FoldEmail(e.Record.Email()))
	restoreFactors(e.Record)
	if fromDashboard(e.Record) { // the API's own rules name its own fields
		if err := passwordPolicy(e.Record); err != nil {
			return err
		}
	}
	for _, column := range []string{"created_at", "updated_at"} {
		if e.Record.GetString(column) == "" {
			e.Record.Set(column, now)
		}
	}
	return e.Next()
}

// endSessions ends the sign-ins of a user whose password, address, role, second factor or account was changed or taken away, whoever did
// it. The engines end them first, for a reason of their own; then nothing is left to end.
func (h *hooks) endSessions(e *core.RecordEvent) error {
	before, after := collections.AsUser(e.Record.Original()), collections.AsUser(e.Record)
	changed := before.PasswordHash() != after.PasswordHash() || before.Email() != after.Email() || before.Role() != after.Role() ||
		before.Active() && !after.Active() || before.TwoFactorEnabled() && !after.TwoFactorEnabled()
	if err := e.Next(); err != nil || !changed {
		return err
	}
	_, err := auth.RevokeAll(e.App, after.Id, "account_change", h.Clock())
	return err
}
