package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() {
	step("1767225602_users.go", func(app core.App) error {
		if err := reshapeUsers(app); err != nil {
			return err
		}
		if err := tightenSuperusers(app); err != nil {
			return err
		}
		return saveAll(app, refreshTokens(app), loginFailures(), backupCodes(app), resetTokens(app))
	})
}

// reshapeUsers turns PocketBase's open default collection into ours: nobody registers, signs in or reads through
// PocketBase's own routes, and an access token lives fifteen minutes.
func reshapeUsers(app core.App) error {
	collection, err := app.FindCollectionByNameOrId("users")
	if err != nil {
		return fmt.Errorf("find users: %w", err)
	}
	for _, name := range []string{"name", "avatar", "created", "updated"} {
		collection.Fields.RemoveByName(name)
	}
	collection.ListRule, collection.ViewRule, collection.CreateRule, collection.UpdateRule, collection.DeleteRule = nil, nil, nil, nil, nil
	collection.AuthRule, collection.ManageRule = nil, nil
	collection.AuthToken.Duration = 900
	collection.PasswordResetToken.Duration = 3600
	collection.PasswordAuth.Enabled = false
	collection.OTP.Enabled, collection.MFA.Enabled, collection.OAuth2.Enabled = false, false, false
	collection.AuthAlert.Enabled = false
	if password, ok := collection.Fields.GetByName("password").(*core.PasswordField); ok {
		password.Min = 12
	}
	users := &table{Collection: collection}
	users.phi("first_name", 100, "").phi("last_name", 100, "").phi("phone", 20, "")
	users.with(
		requiredChoice("role", "What the person may do.", "admin", "clinical_manager", "provider", "nurse", "ma", "data_monitor", "patient"),
		flag("is_active", "An inactive account cannot sign in, and its tokens stop at once."),
		text("time_zone", 64, "IANA name; the practice's zone when empty."),
		text("npi", 10, "National Provider Identifier, ten digits with check digit."),
		text("patient", 36, "The patient whose portal account this is (role patient only)."),
		flag("must_change_password", ""),
		flag("two_factor_enabled", ""),
		instant("last_login_at", "Last completed sign-in."),
		instant("created_at", ""),
		instant("updated_at", ""),
		integer("totp_last_step", "The last time step accepted, so that no code works twice."),
		integer("totp_pending_failures", "Wrong codes given to a pending set-up."),
		instant("totp_pending_until", "When a pending set-up lapses."),
	)
	users.phi("totp_secret", 64, "").phi("totp_pending_secret", 64, "").phi("totp_pending_codes", 500, "")
	for _, name := range []string{"totp_secret", "totp_pending_secret", "totp_pending_codes"} {
		users.Fields.GetByName(name).SetHidden(true)
	}
	users.index("patient", false, "patient", "patient != ''")
	return users.save(app)
}

func tightenSuperusers(app core.App) error {
	superusers, err := app.FindCollectionByNameOrId(core.CollectionNameSuperusers)
	if err != nil {
		return fmt.Errorf("find superusers: %w", err)
	}
	superusers.AuthToken.Duration = 3600
	return app.Save(superusers)
}

func refreshTokens(app core.App) *table {
	return newTable("refresh_tokens").with(
		relation(app, "user", "users", true, ""),
		&core.TextField{Name: "token_hash", Max: 64, Required: true, Hidden: true, Help: "SHA-256 of the token; the token itself is never stored."},
		requiredText("family", 36, "All tokens that came from one sign-in."),
		text("parent", 15, "The token this one replaced."),
		text("device_id", 128, ""),
		requiredChoice("state", "", "valid", "rotated", "revoked"),
		text("revoked_because", 50, ""),
		instant("family_started_at", ""),
		instant("issued_at", ""),
		instant("expires_at", ""),
		instant("last_used_at", ""),
		text("source_ip", 45, ""),
	).
		index("hash", true, "token_hash", "").
		index("family", false, "family", "").
		index("user_state", false, "user, state", "").
		index("expires", false, "expires_at", "")
}

func loginFailures() *table {
	return newTable("login_failures").with(
		&core.TextField{Name: "email_key", Max: 64, Required: true, Hidden: true, Help: "Keyed hash of the address, known or not."},
		integer("failures", "Consecutive failures."),
		instant("last_failure_at", ""),
		instant("locked_until", ""),
	).index("key", true, "email_key", "")
}

func backupCodes(app core.App) *table {
	return newTable("backup_codes").with(
		relation(app, "user", "users", true, ""),
		&core.TextField{Name: "code_hash", Max: 64, Required: true, Hidden: true},
		instant("created_at", ""),
		instant("used_at", ""),
	).index("user_code", true, "user, code_hash", "")
}

func resetTokens(app core.App) *table {
	return newTable("reset_tokens").with(
		relation(app, "user", "users", true, ""),
		&core.TextField{Name: "token_hash", Max: 64, Required: true, Hidden: true, Help: "SHA-256 of the token in the mailed link."},
		requiredChoice("purpose", "", "reset", "welcome"),
		instant("created_at", ""),
		instant("expires_at", ""),
		instant("used_at", ""),
	).index("hash", true, "token_hash", "").index("user", false, "user, created_at", "")
}
