package collections

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"
)

// auditGuards are the triggers that keep the audit trail append-only and its state in place, by table and name, word for word as the
// migrations made them.
var auditGuards = map[string]map[string]string{
	"audit_log": {
		"audit_log_no_update": `CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`,
		"audit_log_no_delete": `CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`,
		"audit_log_no_replace": `CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)
			BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`,
	},
	"audit_state": {
		"audit_state_no_delete": `CREATE TRIGGER audit_state_no_delete BEFORE DELETE ON audit_state BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END`,
		"audit_state_no_replace": `CREATE TRIGGER audit_state_no_replace BEFORE INSERT ON audit_state WHEN EXISTS (SELECT 1 FROM audit_state)
			BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END`,
	},
}

// ErrGuards says that a trigger that keeps the audit trail is not there, not the one that was made, or one too many.
var ErrGuards = errors.New("the audit log has lost its guards")

// CheckAuditGuards compares the triggers that keep the audit trail, by their text, with those that the migrations made. It fails with
// [ErrGuards] when one is gone or says something else, and when there is one that nobody knows. PocketBase's schema snapshots do not hold them.
func CheckAuditGuards(app core.App) error {
	var found []struct {
		Table string `db:"tbl_name"`
		Name  string `db:"name"`
		SQL   string `db:"sql"`
	}
	err := app.DB().NewQuery(`SELECT lower(tbl_name) AS tbl_name, name, COALESCE(sql, '') AS sql FROM sqlite_master
		WHERE type = 'trigger' AND lower(tbl_name) IN ('audit_log', 'audit_state') ORDER BY name`).All(&found)
	if err != nil {
		return fmt.Errorf("look for the audit log's guards: %w", err)
	}
	keeps, err := HasAuditState(app)
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for table, guards := range auditGuards {
		for name := range guards {
			missing[name] = table == "audit_log" || keeps
		}
	}
	var wrong []string
	for _, trigger := range found {
		text, known := auditGuards[trigger.Table][trigger.Name]
		if !known || words(trigger.SQL) != words(text) {
			wrong = append(wrong, trigger.Name+" is not ours")
		}
		missing[trigger.Name] = false
	}
	for name, gone := range missing {
		if gone {
			wrong = append(wrong, name+" is gone")
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("%w: trigger %s", ErrGuards, strings.Join(wrong, ", trigger "))
	}
	return nil
}

// words is a text with its white space evened out.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
