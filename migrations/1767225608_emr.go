package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225608_emr.go", func(app core.App) error {
		tokens := newTable("emr_tokens").with(
			requiredChoice("flow", "", "backend_services", "interactive"),
			text("scope", 1000, ""),
			instant("obtained_at", ""),
			instant("expires_at", ""),
			instant("refresh_expires_at", ""),
			text("connected_by", 254, "E-mail address."),
		).phi("access_token", 8192, "").phi("refresh_token", 8192, "").index("flow", true, "flow", "")

		states := newTable("emr_auth_states").with(
			&core.TextField{Name: "state_hash", Max: 64, Required: true, Hidden: true},
			relation(app, "user", "users", true, "Who started the connection."),
			instant("created_at", ""),
			instant("expires_at", ""),
			instant("used_at", ""),
		).phi("verifier", 128, "PKCE code verifier.").index("hash", true, "state_hash", "")
		for _, t := range []*table{tokens, states} {
			for _, name := range []string{"access_token", "refresh_token", "verifier"} {
				if field := t.Fields.GetByName(name); field != nil {
					field.SetHidden(true)
				}
			}
		}
		return saveAll(app, tokens, states)
	})
}
