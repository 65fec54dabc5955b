package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950000_user_credential.go", addUserCredential) }

// addUserCredential adds the professional credential of a user, such as RN, which the evidence of billed minutes names.
func addUserCredential(app core.App) error {
	return changeCollection(app, "users", []string{
		`{"name": "credential", "type": "text", "id": "text2716401599", "help": "Professional credential, such as RN.", "max": 40}`,
	})
}
