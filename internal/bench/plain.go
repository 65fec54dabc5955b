package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/bench/slow"
)

// The two collections of the plain server, and who asks.
const (
	plainReadings = "readings"
	plainPatients = "seeded"
	plainUser     = "bench@vigil.example"
)

// numbers begins a statement that [loader.inChunks] runs.
const numbers = `WITH RECURSIVE n(i) AS (SELECT {:from} UNION ALL SELECT i + 1 FROM n WHERE i < {:until}) `

// servePlain is PocketBase as it comes, with one collection that has the fields and indexes of a reading, and a list to
// compare triage with. It prints a user's token as its first line.
func servePlain(args []string) error {
	flags := flag.NewFlagSet("plain", flag.ExitOnError)
	dir, addr := flags.String("dir", "", "data folder"), flags.String("http", "", "address")
	patients, readings := flags.Int("patients", 1, "rows of the list"), flags.Int("readings", 1, "readings stored before")
	full := flags.Bool("full", false, "wait for the disk on every commit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := seedPlain(*dir, *patients, *readings); err != nil {
		return err
	}
	slow.Commits(os.Getenv(slow.Setting))
	settings := pocketbase.Config{DefaultDataDir: *dir, HideStartBanner: true}
	if *full {
		settings.DBConnect = connectFull
	}
	app := pocketbase.NewWithConfig(settings)
	if err := app.Bootstrap(); err != nil {
		return err
	}
	user, err := app.FindAuthRecordByEmail("users", plainUser)
	if err != nil {
		return err
	}
	token, err := user.NewStaticAuthToken(24 * time.Hour)
	if err != nil {
		return err
	}
	fmt.Println(token)
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.InstallerFunc = nil
		return e.Next()
	})
	return apis.Serve(app, apis.ServeConfig{HttpAddr: *addr})
}

// connectFull opens as PocketBase does, but for the waiting.
func connectFull(path string) (*dbx.DB, error) {
	pragmas := []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "journal_size_limit(200000000)", "synchronous(FULL)", "foreign_keys(ON)",
		"temp_store(MEMORY)", "cache_size(-32000)",
	}
	return dbx.Open("sqlite", path+"?_pragma="+strings.Join(pragmas, "&_pragma="))
}

// seedPlain makes the two collections and their user, and fills them; patients have a score and a name in clear, as one
// would without encryption.
func seedPlain(dir string, patients, readings int) error {
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: dir, DBConnect: connectLoading})
	if err := app.Bootstrap(); err != nil {
		return err
	}
	defer func() { _ = app.ClearBootstrap() }() // everything is committed
	log.SetFlags(0)
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	for _, collection := range plainCollections() {
		if err := app.Save(collection); err != nil {
			return err
		}
	}
	l := loader{context.Background(), app}
	err := l.bare(plainPatients, func() error {
		return l.inChunks(max(patients, 1), "plain patients", numbers+`INSERT INTO seeded (id, name, mrn, score, open)
			SELECT printf('p%014d', i + 1), 'Given' || (i % 997) || ' Family' || (i * 7919 % 100003), printf('MRN-%08d', i), i * 7919 % 101, i % 5 FROM n`, dbx.Params{})
	})
	if err != nil {
		return err
	}
	err = l.bare(plainReadings, func() error {
		return l.inChunks(max(readings, 1), "plain readings", numbers+`INSERT INTO readings (id, patient, kind, measured_at, device, systolic, diastolic, pulse, status)
			SELECT printf('o%014d', i), printf('p%014d', i % {:patients} + 1), 'blood_pressure',
				strftime('%Y-%m-%d %H:%M:%fZ', 1700000000 + i * 7, 'unixepoch'), '', 120, 80, 70, 'final' FROM n`, dbx.Params{"patients": max(patients, 1)})
	})
	if err != nil {
		return err
	}
	users, err := app.FindCollectionByNameOrId("users")
	if err != nil {
		return err
	}
	user := core.NewRecord(users)
	user.SetEmail(plainUser)
	user.SetPassword("bench-password-1234")
	return app.Save(user)
}

// plainCollections are readings with the fields and indexes of ours, and the list of patients.
func plainCollections() []*core.Collection {
	signedIn := "@request.auth.id != ''"
	readings := core.NewBaseCollection(plainReadings)
	readings.CreateRule, readings.ListRule = &signedIn, &signedIn
	readings.Fields.Add(
		&core.TextField{Name: "patient", Required: true}, &core.TextField{Name: "kind", Required: true}, &core.TextField{Name: "measured_at", Required: true},
		&core.TextField{Name: "device"}, &core.NumberField{Name: "systolic"}, &core.NumberField{Name: "diastolic"}, &core.NumberField{Name: "pulse"},
		&core.TextField{Name: "status"},
	)
	readings.AddIndex("idx_readings_patient", false, "patient, kind, measured_at", "")
	readings.AddIndex("idx_readings_measured", false, "measured_at", "")
	readings.AddIndex("idx_readings_key", true, "device, measured_at", "device != ''")
	list := core.NewBaseCollection(plainPatients)
	list.ListRule = &signedIn
	list.Fields.Add(&core.TextField{Name: "name"}, &core.TextField{Name: "mrn"}, &core.NumberField{Name: "score"}, &core.NumberField{Name: "open"})
	list.AddIndex("idx_seeded_score", false, "score, open", "")
	return []*core.Collection{readings, list}
}
