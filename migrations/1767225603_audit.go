package migrations

import "github.com/pocketbase/pocketbase/core"

// The audit trail is append only: the collection belongs to the system, so that the dashboard cannot delete or
// reshape it, and three triggers refuse update, delete and replacement by raw SQL.
func init() {
	step("1767225603_audit.go", func(app core.App) error {
		audit := newTable("audit_log")
		audit.System = true
		audit.with(
			requiredText("recorded_at", 27, "UTC, six digits."),
			requiredText("event", 50, "What happened, as noun.verb."),
			requiredChoice("action", "", "C", "R", "U", "D", "E"),
			requiredChoice("outcome", "0 success, 4 minor, 8 serious, 12 major failure.", "0", "4", "8", "12"),
			requiredChoice("actor_type", "", "user", "superuser", "system", "gateway", "emr", "anonymous"),
			text("actor_id", 64, ""),
			text("actor_email", 254, ""),
			text("actor_role", 30, ""),
			text("resource_type", 50, ""),
			text("resource_id", 128, ""),
			text("patient", 36, ""),
			text("source_ip", 45, ""),
			text("client", 300, "User agent."),
			text("request_id", 64, ""),
		).
			phi("reason", 2000, "").
			phi("changes", 0, "Names and values of what changed.").
			with(
				&core.TextField{Name: "prev_hash", Min: 64, Max: 64, Required: true},
				&core.TextField{Name: "hash", Min: 64, Max: 64, Required: true, Help: "SHA-256 over the previous hash and this row."},
			).
			index("recorded", false, "recorded_at", "").
			index("event", false, "event, id", "").
			index("actor", false, "actor_id, id", "").
			index("resource", false, "resource_type, resource_id, id", "").
			index("patient", false, "patient, id", "patient != ''")
		if err := audit.save(app); err != nil {
			return err
		}
		return execute(app,
			`CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`,
			`CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`,
			`CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)
				BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`,
		)
	})
}
