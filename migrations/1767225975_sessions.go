package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// A push token knows the session that registered it, and a refresh token whether the access token beside it was ever used.
func init() {
	step("1767225975_sessions.go", func(app core.App) error {
		pushes, err := app.FindCollectionByNameOrId("push_tokens")
		if err != nil {
			return fmt.Errorf("find push_tokens: %w", err)
		}
		refresh, err := app.FindCollectionByNameOrId("refresh_tokens")
		if err != nil {
			return fmt.Errorf("find refresh_tokens: %w", err)
		}
		err = saveAll(app,
			(&table{Collection: pushes}).with(text("session", 36, "The family of refresh tokens it was registered under; empty when none is known.")),
			(&table{Collection: refresh}).with(instant("access_used_at", "First use of the access token that was handed out with it, when both came of a swap.")),
		)
		if err != nil {
			return err
		}
		return findSessions(app)
	})
}

// findSessions gives earlier registrations to the session they came from. An access token lasts fifteen minutes and is handed out with a
// refresh token only: where one session alone had one then, it was that one. What a session registered that has been signed out since
// falls silent, as it would have.
func findSessions(app core.App) error {
	for _, statement := range []string{
		`UPDATE push_tokens SET session = (
			SELECT MIN(r.family) FROM refresh_tokens r WHERE r.user = push_tokens.user AND r.issued_at <= push_tokens.updated_at
				AND r.issued_at > strftime('%Y-%m-%dT%H:%M:%S', push_tokens.updated_at, '-15 minutes')
		) WHERE active = TRUE AND 1 = (
			SELECT COUNT(DISTINCT r.family) FROM refresh_tokens r WHERE r.user = push_tokens.user AND r.issued_at <= push_tokens.updated_at
				AND r.issued_at > strftime('%Y-%m-%dT%H:%M:%S', push_tokens.updated_at, '-15 minutes'))`,
		`UPDATE push_tokens SET active = FALSE, inactive_because = 'logout' WHERE active = TRUE AND session IN
			(SELECT family FROM refresh_tokens WHERE state = 'revoked' AND revoked_because = 'logout')`,
	} {
		if _, err := app.DB().NewQuery(statement).Execute(); err != nil {
			return fmt.Errorf("find the sessions of push tokens: %w", err)
		}
	}
	return nil
}
