package migrations

import "github.com/pocketbase/pocketbase/core"

// Passkeys, the steps of a sign-in that wait for a second factor, and the challenges that have had their use.
func init() {
	step("1767225820_passkeys.go", func(app core.App) error {
		return saveAll(app, passkeys(app), signInSteps(app), usedChallenges())
	})
}

func passkeys(app core.App) *table {
	return newTable("passkeys").with(
		relation(app, "user", "users", true, ""),
		requiredText("credential_id", 1366, "Base64url, without padding."),
		requiredText("public_key", 8192, "COSE key, base64url. It opens nothing by itself."),
		text("transports", 200, "How the browser reaches the device, separated by spaces."),
		text("aaguid", 32, "Model of the device in hexadecimal, when it says so."),
		integer("sign_count", "The last count the device gave; 0 from one that does not count."),
		flag("user_verified", "The device has checked who holds it at the registration."),
		flag("backup_eligible", "The device may copy it to others of the same person; never changes."),
		flag("backed_up", "It had done so at the last use."),
		instant("created_at", ""),
		instant("last_used_at", ""),
	).
		phi("name", 100, "What its owner calls it.").
		index("credential", true, "credential_id", "").
		index("user", false, "user", "")
}

func signInSteps(app core.App) *table {
	return newTable("sign_in_steps").with(
		relation(app, "user", "users", true, ""),
		&core.TextField{Name: "token_hash", Max: 64, Required: true, Hidden: true, Help: "SHA-256 of the temporary token."},
		&core.TextField{Name: "key_hash", Max: 64, Required: true, Hidden: true, Help: "Keyed hash of the user's token key: a new password ends the step."},
		instant("expires_at", ""),
	).index("hash", true, "token_hash", "").index("expires", false, "expires_at", "")
}

func usedChallenges() *table {
	return newTable("used_challenges").with(
		&core.TextField{Name: "challenge_hash", Max: 64, Required: true, Hidden: true, Help: "SHA-256 of the challenge."},
		instant("expires_at", "When the challenge would have ended by itself."),
	).index("hash", true, "challenge_hash", "").index("expires", false, "expires_at", "")
}
