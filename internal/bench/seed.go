package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
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
