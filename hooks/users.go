package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
)

// guardUser folds email addresses as sign-in does, sets dates, and applies the password policy to dashboard writes.
func (h *hooks) guardUser(e *core.RecordEvent) error {
	now := collections.FormatInstant(h.Clock())
	e.Record.SetEmail(auth.FoldEmail(e.Record.Email()))
	restoreFactors(e.Record)
	if fromDashboard(e.Record) { // the API applies its own rules
		if err := passwordPolicy(e.App, e.Record); err != nil {
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

// endSessions ends a user's sessions after a change of password, email address, role, second factor or account state by any writer. The
// engines end them first with a more specific reason.
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

// evictCaregiver removes the account of a changed access from the cache, so that the next request sees the change.
func (h *hooks) evictCaregiver(e *core.RecordEvent) error {
	if h.EvictUser != nil {
		h.EvictUser(collections.AsCaregiver(e.Record).UserID())
	}
	return e.Next()
}
