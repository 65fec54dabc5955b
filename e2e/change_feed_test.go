package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// follower reads the change feed as an integrator does: it stores its cursor with the changes, and retries after a failed
// request.
type follower struct {
	crowd  *allClients
	cursor string
	read   []string
}

// readPage requests one page; caughtUp reports whether it was the last.
func (f *follower) readPage() (caughtUp bool) {
	status, page := f.crowd.try("GET", "/api/v1/changes/?limit=500&since="+url.QueryEscape(f.cursor), "")
	if status != 200 {
		if status != 0 && status != 503 {
			f.crowd.complain("the changes were answered %d: %v", status, page)
		}
		return false
	}
	results, _ := page["results"].([]any)
	for _, one := range results {
		change, _ := one.(map[string]any)
		f.read = append(f.read, lineOf(change["type"], change["id"], change["change"]))
	}
	f.cursor, _ = page["next_cursor"].(string)
	return page["has_more"] == false
}

func lineOf(noun, id, what any) string {
	if number, ok := id.(float64); ok {
		id = strconv.FormatFloat(number, 'f', 0, 64)
	}
	return fmt.Sprint(noun, " ", id, " ", what)
}

// A reader that stores its cursor receives every change exactly once while the service is killed and all writers are active:
// programs, gateways, nurses, the billing office, deliveries, the dashboard, commands and direct SQL. CHANGES and KILLS set
// the minimum numbers.
func TestChangesThroughKills(t *testing.T) {
	t.Parallel()
	least, kills := atLeast("CHANGES", 3000), atLeast("KILLS", 3)
	p, _, _ := deliveringPractice(t, sandbox.Fault{})
	reader := &follower{crowd: newAllClients(t, p)}
	p.Superuser(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader.crowd.work(ctx)
	reader.crowd.writeOutsideAPI(ctx, t)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		for ctx.Err() == nil {
			if reader.readPage() {
				pause(ctx, 20*time.Millisecond)
			}
		}
	}()
	db := p.database(t)
	for n := range kills {
		eventually(t, 10*time.Minute, "enough was written", func() bool {
			return number(t, db, `SELECT MAX(seq) FROM changes`) >= least*(n+1)/kills
		})
		p.Kill()
		if n == 0 {
			p.must(t, p.Dir, "transmissions", "retry", "--since", "1h")
		}
		p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	}
	// The writers continue until each kind of change that the checks below need has occurred, however slow the machine is.
	for _, kind := range []string{
		`type = 'device' AND event = ''`, `type = 'patient' AND change = 'updated'`, `type = 'transmission'`, `type = 'alert' AND change = 'updated'`,
	} {
		eventually(t, 10*time.Minute, "a change with "+kind, func() bool {
			return number(t, db, `SELECT EXISTS (SELECT 1 FROM changes WHERE `+kind+`)`) == 1
		})
	}
	stop()
	reader.crowd.group.Wait()
	<-followed
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	until := number(t, db, `SELECT COUNT(*) FROM changes WHERE type != ''`)
	p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	eventually(t, within, "the reader has caught up", reader.readPage)
	if err := p.Stop(t); err != nil { // changes written during the stop have not been read yet
		t.Fatal(err)
	}
	if len(reader.read) < until {
		t.Errorf("%d changes were recorded when the writing ended, and %d read", until, len(reader.read))
	}
	for _, complaint := range reader.crowd.complaints {
		t.Error(complaint)
	}
	wantChangesComplete(t, db, reader)
	t.Logf("%d changes through %d kills", len(reader.read), kills)
}

func atLeast(setting string, short int) int {
	n, err := strconv.Atoi(os.Getenv(setting))
	if err != nil {
		return short
	}
	return n
}

// writeOutsideAPI writes outside Vigil's routes: through PocketBase's API, as its dashboard does, and into the file.
func (c *allClients) writeOutsideAPI(ctx context.Context, t *testing.T) {
	file := c.p.writable(t)
	c.group.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			err := file.Transactional(func(tx *dbx.Tx) error {
				for i := range 10 {
					if _, err := tx.NewQuery(`UPDATE patients SET archived_by = {:n}`).Bind(dbx.Params{"n": strconv.Itoa(10*n + i)}).Execute(); err != nil {
						return err
					}
				}
				if n%5 == 0 {
					return errors.New("as if it had not been")
				}
				return nil
			})
			// The service may write without a pause for longer than this connection waits.
			if err != nil && n%5 != 0 && !strings.Contains(err.Error(), "database is locked") {
				c.complain("the file: %v", err)
			}
			pause(ctx, 20*time.Millisecond)
		}
	})
	var device string
	if err := file.NewQuery(`SELECT id FROM devices LIMIT 1`).Row(&device); err != nil {
		t.Fatal(err)
	}
	super := c.p.super
	c.group.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			status, _ := c.tryAs(super, "PATCH", "/api/collections/devices/records/"+device, fmt.Sprintf(`{"firmware_version":"1.%d"}`, n))
			if status != 200 && status != 0 && status != 503 {
				c.complain("the dashboard was answered %d", status)
			}
			pause(ctx, 100*time.Millisecond)
		}
	})
}

// wantChangesComplete compares the changes read with the recorded ones, and these with the tables.
func wantChangesComplete(t *testing.T, db *dbx.DB, reader *follower) {
	t.Helper()
	var told []string
	err := db.NewQuery(`SELECT type || ' ' || record || ' ' || change FROM changes WHERE type != '' ORDER BY seq`).Column(&told)
	if err != nil {
		t.Fatal(err)
	}
	if len(told) < len(reader.read) || !slices.Equal(told[:len(reader.read)], reader.read) {
		n := 0
		for n < min(len(told), len(reader.read)) && told[n] == reader.read[n] {
			n++
		}
		t.Errorf("%d changes were recorded and %d read; they differ from number %d on", len(told), len(reader.read), n)
	}
	// Joins a table's rows with the number of changes recorded for each; rows that match the condition are errors.
	beside := func(table, id, what, wrong string) string {
		return `SELECT COUNT(*) FROM ` + table + ` x LEFT JOIN (SELECT record, COUNT(*) AS times FROM changes WHERE ` + what + ` GROUP BY record) c
			ON c.record = ` + id + ` WHERE ` + wrong
	}
	const once, never, number15 = `COALESCE(times, 0) != 1`, `times IS NULL`, `ltrim(x.id, '0')`
	for what, query := range map[string]string{
		"gaps":                      `SELECT MAX(seq) - COUNT(*) FROM changes`,
		"readings not told once":    beside("observations", "x.id", `type = 'observation' AND change = 'created'`, once),
		"readings that are not":     `SELECT COUNT(*) FROM changes WHERE type = 'observation' AND record NOT IN (SELECT id FROM observations)`,
		"alerts not told once":      beside("alerts", number15, `type = 'alert' AND change = 'created'`, once),
		"ends of alerts not told":   beside("alerts", number15, `event = 'alert.resolved'`, never+` AND x.status IN ('resolved', 'auto_resolved')`),
		"escalations not told once": beside("escalations", number15, `type = 'escalation' AND change = 'created'`, once),
		"claims not told once":      beside("billing_entries", "x.id", `type = 'claim' AND change = 'created'`, once),
		"deliveries not told":       beside("transmissions", "x.id", `type = 'transmission'`, never+` AND x.status = 'transmitted'`),
		"patients not told once":    beside("patients", "x.id", `type = 'patient' AND change = 'created'`, once),
	} {
		if n := number(t, db, query); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
}

// After a restore, a cursor from before the backup continues, and one from after it is refused, also once the numbers have
// caught up.
func TestChangesAfterRestore(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_BACKUP_KEEP=0").serve(t, "")
	latest := func() string {
		return text(t, p.get(t, "/api/v1/changes/?since=latest", p.Admin(t)).expect(t, 200), "next_cursor")
	}
	follow := func(cursor string) answer { return p.get(t, "/api/v1/changes/?since="+cursor, p.Admin(t)) }
	p.patient(t, object{"gateway_patient_id": "GW-1"})
	before := latest()
	p.must(t, p.Dir, "backup", "create")
	lost := p.patient(t, object{"gateway_patient_id": "LOST"})
	p.patient(t, object{"gateway_patient_id": "LOST-2"})
	p.patient(t, object{"gateway_patient_id": "LOST-3"})
	after := latest()
	follow(after).expect(t, 200)
	p.Kill()
	p.must(t, p.Dir, "backup", "restore", "--replace")
	p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	p.admin = ""
	refused := func() {
		t.Helper()
		if got := follow(after).expect(t, 400); text(t, got, "code") != "invalid_cursor" {
			t.Errorf("answered %v", got)
		}
	}
	refused()
	want := p.patient(t, object{"gateway_patient_id": "AGAIN"})
	p.patient(t, object{"gateway_patient_id": "AGAIN-2"})
	refused()
	p.patient(t, object{"gateway_patient_id": "AGAIN-3"})
	p.patient(t, object{"gateway_patient_id": "AGAIN-4"})
	refused()
	got := follow(before).expect(t, 200)
	if body := string(got.body); !strings.Contains(body, want) || strings.Contains(body, lost) || strings.Count(body, `"created"`) != 4 {
		t.Errorf("after the restore %s", body)
	}
}
