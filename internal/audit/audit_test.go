package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func reading() audit.Entry {
	return audit.Entry{
		Event: audit.ObservationCreate, Actor: audit.Gateway(audit.Origin{Address: "192.0.2.7", Client: "gateway/1", RequestID: "0198c0de"}),
		ResourceType: "Observation", ResourceID: "0198c0de-0000-7000-8000-000000000001", PatientID: "0198c0de-0000-7000-8000-000000000002",
	}
}

func appendMany(t testing.TB, app core.App, n int) {
	t.Helper()
	err := app.RunInTransaction(func(tx core.App) error {
		chain, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		for range n {
			if err := chain.Add(reading(), vigiltest.Clock); err != nil {
				return err
			}
		}
		return chain.Store()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, app core.App) audit.Result {
	t.Helper()
	result, err := audit.Verify(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func rows(t testing.TB, app core.App) []collections.AuditRow {
	t.Helper()
	rows, err := collections.AuditRows(app, "", "~", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestAppend(t *testing.T) {
	app := vigiltest.NewApp(t)
	before := vigiltest.RowCounts(t, app)
	entry := audit.Entry{
		Event: audit.PatientUpdate, Actor: audit.User(7, "nurse@vigil.test", "nurse", audit.Origin{Address: "192.0.2.1", Client: "bad\xff" + strings.Repeat("x", 400)}),
		ResourceType: "Patient", ResourceID: "p1", PatientID: "p1", Reason: "moved house",
		Changes: audit.Changes{"phone": {Old: phi.Text("555-0100"), New: phi.Text("555-0199")}, "active": {Old: false, New: true}, "program": {New: 3}},
	}
	if err := audit.Append(app, entry, vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 1 || added["audit_log"] != 1 {
		t.Errorf("added %v, want one audit row only", added)
	}
	row := rows(t, app)[0]
	if row.ID != collections.NumberID(1) || row.RecordedAt != "2026-01-15T13:45:00.000000Z" || row.Action != "U" || row.Outcome != "0" ||
		row.ActorType != "user" || row.ActorID != "7" || row.PrevHash != strings.Repeat("0", 64) || len(row.Hash) != 64 {
		t.Errorf("stored %+v", row)
	}
	if strings.Contains(row.Changes+row.Reason, "555") || strings.Contains(row.Reason, "house") {
		t.Error("changes or reason are readable on disk")
	}
	record, err := app.FindRecordById(collections.AuditLog, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"active":{"old":false,"new":true},"phone":{"old":"555-0100","new":"555-0199"},"program":{"new":3}}`
	if got := record.GetString("changes"); got != want {
		t.Errorf("changes open as %s", got)
	}
	if got := record.GetString("reason"); got != "moved house" {
		t.Errorf("reason opens as %q", got)
	}
	if result := verify(t, app); !result.Valid || result.Checked != 1 || result.HeadHash != row.Hash {
		t.Errorf("result %+v", result)
	}
}

func TestAppendRefusesIncompleteEntries(t *testing.T) {
	app := vigiltest.NewApp(t)
	for name, entry := range map[string]audit.Entry{
		"no event":             {Actor: audit.System()},
		"no actor":             {Event: audit.Login},
		"changes not encoding": {Event: audit.Login, Actor: audit.System(), Changes: audit.Changes{"f": {New: func() {}}}},
	} {
		if err := audit.Append(app, entry, vigiltest.Clock); err == nil {
			t.Errorf("%s: appended", name)
		}
	}
	if _, err := audit.NewChain(app); err == nil {
		t.Error("a chain was created outside a transaction")
	}
	if result := verify(t, app); !result.Valid || result.Checked != 0 || result.HeadHash != "" || result.FirstInvalidID != nil {
		t.Errorf("empty log: %+v", result)
	}
}

// A failed transaction leaves no gap in the chain, and concurrent writers do not fork it.
func TestAppendIsAtomic(t *testing.T) {
	app := vigiltest.NewApp(t)
	errUndo := errors.New("undo")
	err := app.RunInTransaction(func(tx core.App) error {
		if err := audit.Append(tx, reading(), vigiltest.Clock); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 5 {
				if err := audit.Append(app, reading(), vigiltest.Clock); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if result := verify(t, app); !result.Valid || result.Checked != 40 {
		t.Errorf("result %+v, want 40 valid rows", result)
	}
}

func TestVerifyReadsPages(t *testing.T) {
	app := vigiltest.NewApp(t)
	appendMany(t, app, 2001)
	var heard []string
	result, err := audit.Verify(app, func(checked, total int64) { heard = append(heard, fmt.Sprint(checked, "/", total)) })
	if err != nil || !result.Valid || result.Checked != 2001 {
		t.Errorf("result %+v, %v", result, err)
	}
	if got := fmt.Sprint(heard); got != "[1000/2001 2000/2001 2001/2001]" {
		t.Errorf("progress was %s", got)
	}
}

func TestAppendOnly(t *testing.T) {
	app := vigiltest.NewApp(t)
	appendMany(t, app, 2)
	for _, sql := range []string{
		`UPDATE audit_log SET outcome = '8' WHERE id = '000000000000001'`,
		`DELETE FROM audit_log WHERE id = '000000000000001'`,
		`DELETE FROM audit_log`,
		`INSERT OR REPLACE INTO audit_log SELECT * FROM audit_log WHERE id = '000000000000002'`,
	} {
		if _, err := app.NonconcurrentDB().NewQuery(sql).Execute(); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	record, err := app.FindRecordById(collections.AuditLog, collections.NumberID(1))
	if err != nil {
		t.Fatal(err)
	}
	record.Set("outcome", "8")
	if app.Save(record) == nil || app.Delete(record) == nil {
		t.Error("a row was changed or deleted through the app")
	}
	if result := verify(t, app); !result.Valid || result.Checked != 2 {
		t.Errorf("result %+v", result)
	}
}

func TestVerifyFindsTampering(t *testing.T) {
	tests := map[string]struct {
		sql   string
		first int64
	}{
		"first row altered":      {`UPDATE audit_log SET actor_email = 'x@y.z' WHERE id = '000000000000001'`, 1},
		"field emptied":          {`UPDATE audit_log SET source_ip = '' WHERE id = '000000000000004'`, 4},
		"encrypted part altered": {`UPDATE audit_log SET reason = 'v1:test:a:b' WHERE id = '000000000000004'`, 4},
		"text between columns":   {`UPDATE audit_log SET client = client || source_ip, source_ip = '' WHERE id = '000000000000004'`, 4},
		"hash altered":           {`UPDATE audit_log SET hash = prev_hash WHERE id = '000000000000004'`, 4},
		"last row altered":       {`UPDATE audit_log SET outcome = '8' WHERE id = '000000000000009'`, 9},
		"first row missing":      {`DELETE FROM audit_log WHERE id = '000000000000001'`, 1},
		"middle row missing":     {`DELETE FROM audit_log WHERE id = '000000000000005'`, 5},
		"missing and renumbered": {`DELETE FROM audit_log WHERE id = '000000000000005';
			UPDATE audit_log SET id = printf('%015d', CAST(id AS INTEGER) - 1) WHERE id > '000000000000005'`, 5},
		"two rows swapped": {`UPDATE audit_log SET id = 'swap' WHERE id = '000000000000003';
			UPDATE audit_log SET id = '000000000000003' WHERE id = '000000000000004';
			UPDATE audit_log SET id = '000000000000004' WHERE id = 'swap'`, 3},
		"row forged at the end": {`INSERT INTO audit_log (id, recorded_at, event, action, outcome, actor_type, prev_hash, hash)
			SELECT '000000000000010', recorded_at, event, action, outcome, actor_type, hash, hash FROM audit_log WHERE id = '000000000000009'`, 10},
		"row with a foreign id": {`UPDATE audit_log SET id = 'zzz' WHERE id = '000000000000009'`, 9},
		"end cut off":           {`DELETE FROM audit_log WHERE id > '000000000000006'`, 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			appendMany(t, app, 9)
			tamper(t, app, test.sql)
			result := verify(t, app)
			if result.Valid || result.FirstInvalidID == nil || *result.FirstInvalidID != test.first || result.Checked > test.first || result.Checked < test.first-1 {
				t.Errorf("result %+v, want the first invalid row %d", result, test.first)
			}
		})
	}
}

// tamper changes the trail as an attacker with the database file could.
func tamper(t *testing.T, app core.App, sql string) {
	t.Helper()
	for _, statement := range append([]string{
		`DROP TRIGGER audit_log_no_update`, `DROP TRIGGER audit_log_no_delete`, `DROP TRIGGER audit_log_no_replace`,
	}, strings.Split(sql, ";")...) {
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEntriesDoNotPrint(t *testing.T) {
	entry := reading()
	entry.Reason = "Jane Roe"
	entry.Changes = audit.Changes{"last_name": {Old: "Roe", New: "Doe"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, entry); strings.Contains(text, "Roe") || strings.Contains(text, "Doe") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	if _, err := json.Marshal(entry); err == nil {
		t.Error("an entry was encoded")
	}
	if _, err := json.Marshal(entry.Changes); err == nil {
		t.Error("changes were encoded")
	}
}

// BenchmarkAppend appends rows one by one in a transaction with other work.
func BenchmarkAppend(b *testing.B) {
	app := vigiltest.NewApp(b)
	b.ResetTimer()
	err := app.RunInTransaction(func(tx core.App) error {
		for range b.N {
			if err := audit.Append(tx, reading(), vigiltest.Clock); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkChain appends the rows of a batch with one chain, as the observation writer does.
func BenchmarkChain(b *testing.B) {
	app := vigiltest.NewApp(b)
	b.ResetTimer()
	for done := 0; done < b.N; done += 64 {
		appendMany(b, app, 64)
	}
}

func BenchmarkVerify(b *testing.B) {
	app := vigiltest.NewApp(b)
	appendMany(b, app, 1000)
	for b.Loop() {
		verify(b, app)
	}
}
