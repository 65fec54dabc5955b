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

// content is what a data folder is filled with.
type content struct {
	patients, readings int
	pending            int  // readings that wait for their delivery to the EMR
	billable           bool // every patient has a month of data, a consent and a diagnosis
	entries            int  // billed in the last two years
}

// people is what the load needs to know of the patients in the database.
type people struct{ patients, devices []string }

// seed fills a data folder whose schema is there, by SQL and as the service would seal it.
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
		if err := timed(fmt.Sprintf("%d %s", step.rows, step.what), func() error { return step.work(step.rows) }); err != nil {
			return people{}, err
		}
	}
	return s.people, nil
}

// timed says how long a step took, when one had to wait for it.
func timed(what string, work func() error) error {
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

// openFolder opens a data folder as the service does, but for the durability.
func openFolder(dir string, env []string) (core.App, error) {
	settings, err := config.Load(env)
	if err != nil {
		return nil, err
	}
	const settingsKey = config.Prefix + "SETTINGS_KEY"
	if err := os.Setenv(settingsKey, settings.SettingsKey.Reveal()); err != nil { // where PocketBase reads it
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
	if err := audit.Begin(app); err != nil {
		return nil, err
	}
	return app, audit.CheckEnd(app)
}

// chunk bounds the rows of one statement that loads.
const chunk = 500_000

// connectLoading opens a database that is thrown away if anything goes wrong while it is filled: nothing is journalled, and
// nothing waits for the disk. Whoever opens it afterwards brings a journal of their own.
func connectLoading(path string) (*dbx.DB, error) {
	return sqlite.File(path, "busy_timeout(10000)", "journal_mode(OFF)", "synchronous(OFF)", "foreign_keys(ON)", "cache_size(-256000)"), nil
}

// loader fills tables by SQL until its context ends.
type loader struct {
	ctx context.Context
	app core.App
}

// run runs statements one after the other; each may use any of the parameters.
func (l loader) run(params dbx.Params, statements ...string) error {
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

// inChunks runs a statement for the numbers from 0 to count-1, some at a time, between {:from} and {:until}, both included,
// and says now and then how far it is.
func (l loader) inChunks(count int, what, statement string, params dbx.Params) error {
	said := time.Now()
	for from := 0; from < count; from += chunk {
		params["from"], params["until"] = from, min(from+chunk, count)-1
		if err := l.run(params, statement); err != nil {
			return err
		}
		if time.Since(said) > 10*time.Second {
			fmt.Fprintf(os.Stderr, "  %d of %d %s\n", min(from+chunk, count), count, what)
			said = time.Now()
		}
	}
	return nil
}

// bare takes the indexes and triggers off a table while work fills it, and puts them back: sorting all keys at once is
// several times as fast as finding the place of each. What triggers would have done is for the work to do.
func (l loader) bare(table string, work func() error) error {
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
	if err := l.run(nil, drop...); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	return l.run(nil, restore...)
}

// insertRows inserts rows handed over as one list; the statement reads them from json_each({:rows}).
func (l loader) insertRows(rows any, statement string) error {
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return l.run(dbx.Params{"rows": string(list)}, statement)
}
