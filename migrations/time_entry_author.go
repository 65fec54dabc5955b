package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1796100020_time_entry_author.go", addTimeEntryAuthor) }

// addTimeEntryAuthor adds the role and credential of who spent the time, as they were when it was recorded. Time from before has those of now.
func addTimeEntryAuthor(app core.App) error {
	err := changeCollection(app, "time_entries", []string{
		`{"name": "user_role", "type": "text", "id": "text1796100021", "help": "Role of the user when the time was recorded.", "max": 40}`,
		`{"name": "user_credential", "type": "text", "id": "text1796100022", "help": "Credential of the user when the time was recorded.", "max": 40}`,
	})
	if err != nil {
		return err
	}
	return execute(app, `UPDATE time_entries SET user_role = u.role, user_credential = u.credential FROM users u WHERE u.id = time_entries.user`)
}
