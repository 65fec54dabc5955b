package e2e

import (
	"fmt"
	"maps"
	"os/exec"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
)

// wantNothingLost compares the database and the EMR with what was acknowledged.
func wantNothingLost(t *testing.T, p *practice, emr emrProcess, c *allClients) {
	t.Helper()
	db := p.database(t)
	eventually(t, 3*time.Minute, "everything is at the EMR", func() bool {
		return number(t, db, `SELECT COUNT(*) FROM transmissions WHERE status != 'transmitted'`) == 0
	})
	if stats := emr.stats(t); stats.Observations != len(c.readings) || stats.MostPerIdentifier != 1 {
		t.Errorf("the EMR saw %+v, want each of %d readings once", stats, len(c.readings))
	}
	if err := p.Stop(t); err != nil {
		t.Errorf("the service ended with: %v", err)
	}
	wantEachReadingOnce(t, db, c.readings)
	wantSums(t, db)
	for id := range c.alerts {
		if number(t, db, `SELECT COUNT(*) FROM alerts WHERE id = printf('%015d', CAST({:id} AS INTEGER)) AND acknowledged = TRUE`, dbx.Params{"id": id}) != 1 {
			t.Errorf("alert %s was acknowledged, and is not", id)
		}
	}
	wantTrail(t, p)
}

// wantEachReadingOnce checks ids and row counts.
func wantEachReadingOnce(t *testing.T, db *dbx.DB, readings map[string]string) {
	t.Helper()
	sent := map[string]string{}
	for key, id := range readings {
		if other, twice := sent[id]; twice || id == "" {
			t.Errorf("%s and %s were both answered with %q", key, other, id)
		}
		sent[id] = key
		if number(t, db, `SELECT COUNT(*) FROM observations WHERE id = {:id}`, dbx.Params{"id": id}) != 1 {
			t.Errorf("%s was acknowledged as %s, which is not stored", key, id)
		}
	}
	for query, want := range map[string]int{
		`SELECT COUNT(*) FROM observations`:                     len(readings),
		`SELECT COUNT(*) FROM transmissions`:                    len(readings),
		`SELECT COUNT(DISTINCT observation) FROM transmissions`: len(readings),
		`SELECT COUNT(*) FROM (SELECT 1 FROM alerts WHERE observation != '' GROUP BY observation, type HAVING COUNT(*) > 1)`:        0,
		`SELECT COUNT(*) FROM audit_log WHERE event = 'observation.create'`:                                                         len(readings),
		`SELECT COUNT(*) FROM (SELECT 1 FROM billing_entries GROUP BY patient, cpt_code, billing_period_start HAVING COUNT(*) > 1)`: 0,
	} {
		if got := number(t, db, query); got != want {
			t.Errorf("%d, want %d: %s", got, want, query)
		}
	}
}

// wantSums recomputes every stored total from its rows.
func wantSums(t *testing.T, db *dbx.DB) {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	var readings []struct {
		Patient string `db:"patient"`
		Kind    string `db:"observation_type"`
		At      string `db:"measured_at"`
	}
	if err := db.NewQuery(`SELECT patient, observation_type, measured_at FROM observations`).All(&readings); err != nil {
		t.Fatal(err)
	}
	days, counts := map[string]int{}, map[string]int{}
	for _, r := range readings {
		at, err := time.Parse("2006-01-02T15:04:05.000000Z", r.At)
		if err != nil {
			t.Fatal(err)
		}
		day := at.In(zone).Format(time.DateOnly)
		days[r.Patient+" "+day+" "+r.Kind]++
		counts[day+" "+r.Kind]++
	}
	if kept := sums(t, db, `SELECT patient || ' ' || day || ' ' || observation_type AS name, readings AS n FROM reading_days`); !maps.Equal(kept, days) {
		t.Errorf("days with data: %d kept, %d counted", len(kept), len(days))
	}
	if kept := sums(t, db, `SELECT day || ' ' || observation_type AS name, readings AS n FROM daily_counts`); !maps.Equal(kept, counts) {
		t.Errorf("readings per day: %d kept, %d counted", len(kept), len(counts))
	}
	for what, pair := range map[string][2]string{
		"open alerts of each patient": {
			`SELECT patient AS name, unacknowledged_alerts AS n FROM triage_scores WHERE unacknowledged_alerts > 0`,
			`SELECT patient AS name, COUNT(*) AS n FROM alerts WHERE acknowledged = FALSE GROUP BY patient`,
		},
		"latest reading of each patient": {
			`SELECT patient || last_reading_at AS name, 1 AS n FROM triage_scores WHERE last_reading_at != ''`,
			`SELECT patient || MAX(measured_at) AS name, 1 AS n FROM observations GROUP BY patient`,
		},
		"totals of the triage list": {
			`SELECT risk_level || needs_review || unacknowledged AS name, patients * 1000000 + risk_scores * 1000 + alerts * 10 + escalations AS n FROM triage_totals WHERE patients > 0`,
			`SELECT risk_level || needs_review || (unacknowledged_alerts > 0) AS name,
				COUNT(*) * 1000000 + SUM(risk_score) * 1000 + SUM(unacknowledged_alerts) * 10 + SUM(active_escalations) AS n FROM triage_scores WHERE listed GROUP BY 1`,
		},
		"totals of transmissions": {
			`SELECT status AS name, transmissions AS n FROM transmission_totals WHERE transmissions != 0`,
			`SELECT status AS name, COUNT(*) AS n FROM transmissions GROUP BY status`,
		},
		"totals of alerts": {
			`SELECT level || status || type || acknowledged AS name, alerts AS n FROM alert_totals WHERE alerts != 0`,
			`SELECT level || status || type || acknowledged AS name, COUNT(*) AS n FROM alerts GROUP BY 1`,
		},
		"billing by month": {
			`SELECT month || cpt_code || status AS name, SUM(claims) * 1000000 + SUM(amount_cents) AS n FROM billing_months WHERE claims > 0 GROUP BY 1`,
			`SELECT substr(service_date, 1, 7) || cpt_code || lifecycle_status AS name, COUNT(*) * 1000000 + SUM(amount_cents) AS n FROM billing_entries GROUP BY 1`,
		},
	} {
		if kept, counted := sums(t, db, pair[0]), sums(t, db, pair[1]); !maps.Equal(kept, counted) {
			t.Errorf("%s: %v kept, %v counted", what, kept, counted)
		}
	}
}

// wantTrail verifies the audit trail with the operator's command, and the database with SQLite's integrity check.
func wantTrail(t *testing.T, p *practice) {
	t.Helper()
	command := exec.Command(binary(t), "audit", "verify", "--dir", p.Dir)
	command.Env = environ(p.Env)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("audit verify: %v\n%s", err, out)
	}
	var verdict string
	if err := p.database(t).NewQuery(`PRAGMA integrity_check`).Row(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity check: %s %v", verdict, err)
	}
}

func number(t testing.TB, db *dbx.DB, query string, params ...dbx.Params) (n int) {
	t.Helper()
	q := db.NewQuery(query)
	for _, p := range params {
		q.Bind(p)
	}
	if err := q.Row(&n); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", query, err))
	}
	return n
}

// sums returns counts by name.
func sums(t testing.TB, db *dbx.DB, query string) map[string]int {
	t.Helper()
	var rows []struct {
		Name string `db:"name"`
		N    int    `db:"n"`
	}
	if err := db.NewQuery(query).All(&rows); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", query, err))
	}
	all := map[string]int{}
	for _, row := range rows {
		all[row.Name] = row.N
	}
	return all
}
