package audit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// dropTriggers removes the triggers, as an attacker with the database file would.
func dropTriggers(t testing.TB, app core.App) {
	t.Helper()
	for _, name := range []string{
		"audit_log_no_update", "audit_log_no_delete", "audit_log_no_replace", "audit_state_no_delete", "audit_state_no_replace",
	} {
		execute(t, app, "DROP TRIGGER IF EXISTS "+name)
	}
}

func execute(t testing.TB, app core.App, sql string) {
	t.Helper()
	if _, err := app.NonconcurrentDB().NewQuery(sql).Execute(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// triggers returns the SQL statements of the triggers.
func triggers(t testing.TB, app core.App) (statements []string) {
	t.Helper()
	if err := app.DB().NewQuery(`SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'audit_%'`).Column(&statements); err != nil {
		t.Fatal(err)
	}
	return statements
}

// attack runs work without the triggers and restores them, as an attacker with the database file could.
func attack(t testing.TB, app core.App, work func()) {
	t.Helper()
	made := triggers(t, app)
	dropTriggers(t, app)
	work()
	for _, sql := range made {
		execute(t, app, sql)
	}
}

// rewrite gives every row from a number on a plain hash, so that the chain is consistent without the key.
func rewrite(t testing.TB, app core.App, from int64) {
	t.Helper()
	previous := strings.Repeat("0", 64)
	for _, row := range rows(t, app) {
		if row.Number() >= from {
			row.PrevHash, row.Hash = previous, audit.UnkeyedHash(previous, row)
			_, err := app.NonconcurrentDB().Update("audit_log", dbx.Params{"prev_hash": row.PrevHash, "hash": row.Hash}, dbx.HashExp{"id": row.ID}).Execute()
			if err != nil {
				t.Fatal(err)
			}
		}
		previous = row.Hash
	}
}

// downgrade makes a database look like one of an older version: plain row hashes, no state, no triggers, and the old binding of the index key.
func downgrade(t testing.TB, app core.App) {
	t.Helper()
	dropTriggers(t, app)
	rewrite(t, app, 1)
	execute(t, app, "DELETE FROM audit_state")
	var sealed string
	if err := app.DB().NewQuery("SELECT sealed FROM sealed_keys WHERE name = 'blind_index'").Row(&sealed); err != nil {
		t.Fatal(err)
	}
	secret, err := vigiltest.Sealer().Open(sealed, "index_key", "2")
	if err != nil {
		t.Fatal(err)
	}
	if sealed, err = vigiltest.Sealer().Seal(secret, "index_key", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := app.DB().Update("sealed_keys", dbx.Params{"sealed": sealed}, dbx.HashExp{"name": "blind_index"}).Execute(); err != nil {
		t.Fatal(err)
	}
}

// upgraded returns a trail with five rows of an older version and four of this one.
func upgraded(t testing.TB) core.App {
	t.Helper()
	app := vigiltest.NewApp(t)
	vigiltest.User(t, app, authz.Nurse)
	appendMany(t, app, 5)
	made := triggers(t, app)
	downgrade(t, app)
	for _, sql := range made {
		execute(t, app, sql)
	}
	if result := verify(t, app); !result.Valid || result.Checked != 5 {
		t.Fatalf("before the first start of this version: %+v", result)
	}
	if err := audit.EnsureState(app); err != nil {
		t.Fatal(err)
	}
	appendMany(t, app, 4)
	return app
}

// Rows of older versions keep their hashes and stay valid; a second start changes nothing.
func TestOldRowsStayValid(t *testing.T) {
	app := upgraded(t)
	if err := audit.EnsureState(app); err != nil {
		t.Fatal(err)
	}
	if result := verify(t, app); !result.Valid || result.Checked != 9 || result.Problem != "" {
		t.Errorf("after the upgrade: %+v", result)
	}
	all := rows(t, app)
	if old := all[4]; old.Hash != audit.UnkeyedHash(old.PrevHash, old) {
		t.Error("an old row has a new hash")
	}
	if fresh := all[5]; fresh.PrevHash != all[4].Hash || fresh.Hash == audit.UnkeyedHash(fresh.PrevHash, fresh) {
		t.Error("the first new row is not chained to the last old one by a keyed hash")
	}
}

// An attacker with the database file but without the key cannot change the trail undetected.
func TestVerifyDetectsChangesWithoutKey(t *testing.T) {
	const change = `UPDATE audit_log SET actor_email = 'x@y.z' WHERE id = '00000000000000`
	tests := map[string]struct {
		attack  func(t *testing.T, app core.App)
		first   int64
		problem audit.Problem
	}{
		"old row rewritten, hashes after it too": {func(t *testing.T, app core.App) { execute(t, app, change+"3'"); rewrite(t, app, 3) }, 5, audit.RowChanged},
		"new row rewritten, hashes after it too": {func(t *testing.T, app core.App) { execute(t, app, change+"7'"); rewrite(t, app, 7) }, 7, audit.RowChanged},
		"everything rewritten":                   {func(t *testing.T, app core.App) { rewrite(t, app, 1) }, 6, audit.RowChanged},
		"end cut off": {func(t *testing.T, app core.App) {
			execute(t, app, "DELETE FROM audit_log WHERE id > '000000000000007'")
		}, 8, audit.RowsMissing},
		"cut to the old rows": {func(t *testing.T, app core.App) {
			execute(t, app, "DELETE FROM audit_log WHERE id > '000000000000005'")
		}, 6, audit.RowsMissing},
		"wiped": {func(t *testing.T, app core.App) { execute(t, app, "DELETE FROM audit_log") }, 1, audit.RowsMissing},
		"wiped with its state": {func(t *testing.T, app core.App) {
			execute(t, app, "DELETE FROM audit_log")
			execute(t, app, "DELETE FROM audit_state")
		}, 1, audit.StateMissing},
		"state with fewer rows": {func(t *testing.T, app core.App) {
			execute(t, app, "DELETE FROM audit_log WHERE id > '000000000000007'")
			execute(t, app, "UPDATE audit_state SET entries = 7, head = (SELECT MAX(hash) FROM audit_log WHERE id = '000000000000007')")
		}, 1, audit.StateForged},
		"state marks all rows as old": {func(t *testing.T, app core.App) {
			rewrite(t, app, 1)
			execute(t, app, "UPDATE audit_state SET unkeyed = 9, (head, unkeyed_head) = (SELECT hash, hash FROM audit_log WHERE id = '000000000000009')")
		}, 1, audit.StateForged},
		"rewritten like an older version": {func(t *testing.T, app core.App) {
			rewrite(t, app, 1)
			execute(t, app, "DELETE FROM audit_state")
		}, 1, audit.StateMissing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			app := upgraded(t)
			attack(t, app, func() { test.attack(t, app) })
			check := func(when string) {
				t.Helper()
				result := verify(t, app)
				if result.Valid || result.FirstInvalidID == nil || *result.FirstInvalidID != test.first || result.Problem != test.problem {
					t.Errorf("%s: %+v (first %v), want %s at %d", when, result, result.FirstInvalidID, test.problem, test.first)
				}
			}
			check("at once")
			if err := audit.EnsureState(app); err != nil {
				t.Errorf("the next start fails: %v", err)
			}
			if err := audit.CheckEnd(app); test.problem != audit.RowChanged && !errors.Is(err, audit.ErrBroken) {
				t.Errorf("the next start returns %v", err)
			}
			check("after a start")
			appendMany(t, app, 3) // the service continues without sealing the changes
			check("after more entries")
		})
	}
}

// Dropping the state table and running the migrations again does not give a valid trail.
func TestStateIsNotRecreated(t *testing.T) {
	app := upgraded(t)
	rewriteAll := func() { rewrite(t, app, 1) }
	attack(t, app, rewriteAll)
	execute(t, app, "DROP TABLE audit_state")
	if result := verify(t, app); result.Valid || result.Problem != audit.StateMissing {
		t.Errorf("without the table: %+v", result)
	}
	execute(t, app, "DELETE FROM _migrations WHERE file LIKE '%_audit.go'")
	if err := app.RunAllMigrations(); err == nil {
		t.Error("the audit tables were created a second time")
	}
	if result := verify(t, app); result.Valid || result.Problem != audit.StateMissing {
		t.Errorf("after the migrations ran again: %+v", result)
	}
}

// Triggers are compared by their text: one with the right name that does nothing counts as missing.
func TestTriggersAreComparedByText(t *testing.T) {
	for name, statements := range map[string][]string{
		"gone":       {"DROP TRIGGER audit_log_no_delete"},
		"of state":   {"DROP TRIGGER audit_state_no_delete"},
		"no-op":      {"DROP TRIGGER audit_log_no_update", "CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT 1; END"},
		"never":      {"DROP TRIGGER audit_log_no_delete", "CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log WHEN FALSE BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END"},
		"other case": {"DROP TRIGGER audit_log_no_delete", "CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON AUDIT_LOG WHEN FALSE BEGIN SELECT 1; END"},
		"elsewhere":  {"DROP TRIGGER audit_log_no_delete", "CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON sequences BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END"},
		"unknown":    {"CREATE TRIGGER lenient AFTER INSERT ON audit_log BEGIN DELETE FROM sequences; END"},
	} {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			appendMany(t, app, 3)
			if err := collections.CheckAuditTriggers(app); err != nil {
				t.Fatal(err)
			}
			for _, sql := range statements {
				execute(t, app, sql)
			}
			if err := collections.CheckAuditTriggers(app); !errors.Is(err, collections.ErrAuditTriggers) {
				t.Errorf("the start returns %v", err)
			}
			if result := verify(t, app); result.Valid || result.Problem != audit.TriggerMissing || *result.FirstInvalidID != 4 {
				t.Errorf("result %+v", result)
			}
		})
	}
}

// Triggers protect the state too, and its seal detects changes.
func TestTriggersProtectState(t *testing.T) {
	app := vigiltest.NewApp(t)
	appendMany(t, app, 3)
	for _, sql := range []string{
		"DELETE FROM audit_state", "INSERT OR REPLACE INTO audit_state SELECT * FROM audit_state", "REPLACE INTO audit_state SELECT * FROM audit_state",
		"UPDATE audit_state SET id = 2",
	} {
		if _, err := app.NonconcurrentDB().NewQuery(sql).Execute(); err == nil {
			t.Errorf("%s succeeded", sql)
		}
	}
	if result := verify(t, app); !result.Valid {
		t.Errorf("%+v", result)
	}
	for _, sql := range []string{"entries = 4", "unkeyed = 1", "seal = ''", "head = unkeyed_head"} {
		app := vigiltest.NewApp(t)
		appendMany(t, app, 3)
		execute(t, app, "UPDATE audit_state SET "+sql)
		if result := verify(t, app); result.Valid || result.Problem != audit.StateForged {
			t.Errorf("%s: %+v", sql, result)
		}
	}
}
