package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StoredPreferences are what a person chose, as JSON; both texts are "" for somebody who never chose.
type StoredPreferences struct {
	User     string `db:"user"`
	Channels string `db:"channels"`
	Quiet    string `db:"quiet_hours"`
}

// PreferencesOf finds the choices of the given users; those who never chose are left out.
func PreferencesOf(app core.App, userIDs []string) (map[string]StoredPreferences, error) {
	var rows []StoredPreferences
	err := app.DB().Select("user", "channels", "quiet_hours").From(NotificationPreferences).Where(oneOf("user", userIDs)).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("find notification preferences: %w", err)
	}
	found := make(map[string]StoredPreferences, len(rows))
	for _, row := range rows {
		found[row.User] = row
	}
	return found, nil
}

// SavePreferences stores a person's choices.
func SavePreferences(tx core.App, p StoredPreferences, now time.Time) error {
	return exec(tx, "store notification preferences", `INSERT INTO notification_preferences (id, user, channels, quiet_hours, updated_at)
		VALUES ({:id}, {:user}, {:channels}, {:quiet}, {:at})
		ON CONFLICT (user) DO UPDATE SET channels = excluded.channels, quiet_hours = excluded.quiet_hours, updated_at = excluded.updated_at`, dbx.Params{"id": core.GenerateDefaultRandomId(), "user": p.User, "channels": p.Channels, "quiet": p.Quiet, "at": Instant(now)})
}

// oneOf is true for rows whose column has one of the values.
func oneOf(column string, values []string) dbx.Expression {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return dbx.In(column, list...)
}
