package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// content is what a data folder is seeded with.
type content struct {
	patients, readings int
	pending            int  // readings with a queued EMR delivery
	billable           bool // every patient has a month of data, a consent and a diagnosis
	entries            int  // billed in the last two years
}

// people are the patient and device ids that the load uses.
type people struct{ patients, devices []string }

// seed fills a migrated data folder by SQL, with values sealed as the service does.
func seed(ctx context.Context, dir string, env []string, c content) (people, error) {
	app, err := openFolder(dir, env)
	if err != nil {
		return people{}, err
	}
	defer func() { _ = app.ClearBootstrap() }() // everything is committed
	s := &seeder{loader: loader{ctx, app}, now: time.Now().UTC()}
	billable := 0
	if c.billable {
		billable = c.patients
	}
	for _, step := range []struct {
		what string
		rows int
		work func(rows int) error
	}{
		{"patients", c.patients, s.seedPatients},
		{"readings", c.readings, s.seedReadings},
		{"readings to deliver", c.pending, s.seedPending},
		{"months to bill", billable, s.seedBillable},
		{"billing entries", c.entries, s.seedEntries},
	} {
		if step.rows == 0 {
			continue
		}
		if err := reportDuration(fmt.Sprintf("%d %s", step.rows, step.what), func() error { return step.work(step.rows) }); err != nil {
			return people{}, err
		}
	}
	return s.people, nil
}

// reportDuration reports how long a step took when it took more than a second.
func reportDuration(what string, work func() error) error {
	began := time.Now()
	if err := work(); err != nil {
		return fmt.Errorf("seed %s: %w", what, err)
	}
	if took := time.Since(began); took > time.Second {
		fmt.Fprintf(os.Stderr, "  seeded %s in %s\n", what, took.Round(100*time.Millisecond))
	}
	return nil
}

// seeder fills one data folder.
type seeder struct {
	loader
	now time.Time
	people
}

// openFolder opens a data folder as the service does, but without durability.
func openFolder(dir string, env []string) (core.App, error) {
	settings, err := config.Load(env)
	if err != nil {
		return nil, err
	}
	const settingsKey = config.Prefix + "SETTINGS_KEY"
	if err := os.Setenv(settingsKey, settings.SettingsKey.Reveal()); err != nil { // PocketBase reads it from the environment
		return nil, err
	}
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: dir, EncryptionEnv: settingsKey, DBConnect: connectLoading})
	if err := app.Bootstrap(); err != nil {
		return nil, err
	}
	ring, err := phi.NewKeyRing(settings.EncryptionKeys...)
	if err != nil {
		return nil, err
	}
	key, err := collections.LoadIndexKey(app, ring)
	if err != nil {
		return nil, err
	}
	sealer, err := phi.NewSealer(ring, key)
	if err != nil {
		return nil, err
	}
	collections.UseSealer(sealer)
	if err := audit.EnsureState(app); err != nil {
		return nil, err
	}
	return app, audit.CheckEnd(app)
}

// chunk bounds the rows of one loading statement.
const chunk = 500_000

// connectLoading opens a database without journal and without syncing; a failed seed discards it. The service sets its own
// journal mode when it opens the database later.
func connectLoading(path string) (*dbx.DB, error) {
	return sqlite.File(path, "busy_timeout(10000)", "journal_mode(OFF)", "synchronous(OFF)", "foreign_keys(ON)", "cache_size(-256000)"), nil
}

// loader fills tables by SQL until its context ends.
type loader struct {
	ctx context.Context
	app core.App
}

// exec executes statements in order; each may use any of the parameters.
func (l loader) exec(params dbx.Params, statements ...string) error {
	for _, statement := range statements {
		used := dbx.Params{}
		for name, value := range params {
			if strings.Contains(statement, "{:"+name+"}") {
				used[name] = value
			}
		}
		if _, err := l.app.NonconcurrentDB().NewQuery(statement).Bind(used).WithContext(l.ctx).Execute(); err != nil {
			return err
		}
	}
	return nil
}

// inChunks runs a statement for the numbers from 0 to count-1 in chunks, with {:from} and {:until} both included, and
// reports progress.
func (l loader) inChunks(count int, what, statement string, params dbx.Params) error {
	reported := time.Now()
	for from := 0; from < count; from += chunk {
		params["from"], params["until"] = from, min(from+chunk, count)-1
		if err := l.exec(params, statement); err != nil {
			return err
		}
		if time.Since(reported) > 10*time.Second {
			fmt.Fprintf(os.Stderr, "  %d of %d %s\n", min(from+chunk, count), count, what)
			reported = time.Now()
		}
	}
	return nil
}

// withoutIndexes drops a table's indexes and triggers while work fills it, and restores them: building an index at once is several
// times faster than updating it per row. work must do what the triggers would have done.
func (l loader) withoutIndexes(table string, work func() error) error {
	var parts []struct{ Type, Name, SQL string }
	err := l.app.NonconcurrentDB().NewQuery(`SELECT type, name, sql FROM sqlite_master WHERE tbl_name = {:table} AND type IN ('index', 'trigger') AND sql != ''`).
		Bind(dbx.Params{"table": table}).All(&parts)
	if err != nil {
		return err
	}
	drop, restore := []string{}, []string{}
	for _, part := range parts {
		drop, restore = append(drop, "DROP "+part.Type+" "+part.Name), append(restore, part.SQL)
	}
	if err := l.exec(nil, drop...); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	return l.exec(nil, restore...)
}

// insertRows inserts rows passed as one JSON list; the statement reads them from json_each({:rows}).
func (l loader) insertRows(rows any, statement string) error {
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return l.exec(dbx.Params{"rows": string(list)}, statement)
}
