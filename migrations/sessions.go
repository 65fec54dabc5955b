package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795951000_sessions.go", addUserAgents) }

// addUserAgents adds the program of each sign-in, by which its user recognizes a session. The time at which this migration ran begins the grace
// period for second factors in production.
func addUserAgents(app core.App) error {
	return changeCollection(app, "refresh_tokens", []string{
		`{"name": "user_agent", "type": "text", "id": "text3293145029", "help": "The program that signed in or refreshed.", "max": 200}`,
	})
}
