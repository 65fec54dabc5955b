package main

import (
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

// The two collections of the plain server.
const (
	plainReadings = "readings"
	plainPatients = "seeded"
)

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
	slow.Commits(os.Getenv(slow.Setting))
	settings := pocketbase.Config{DefaultDataDir: *dir, HideStartBanner: true}
	if *full {
		settings.DBConnect = connectFull
	}
	app := pocketbase.NewWithConfig(settings)
	if err := app.Bootstrap(); err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	token, err := preparePlain(app, *patients, *readings)
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

func preparePlain(app core.App, patients, readings int) (token string, err error) {
	log.SetFlags(0)
	collection := core.NewBaseCollection(plainReadings)
	signedIn := "@request.auth.id != ''"
	collection.CreateRule, collection.ListRule = &signedIn, &signedIn
	collection.Fields.Add(
		&core.TextField{Name: "patient", Required: true}, &core.TextField{Name: "kind", Required: true}, &core.TextField{Name: "measured_at", Required: true},
		&core.TextField{Name: "device"}, &core.NumberField{Name: "systolic"}, &core.NumberField{Name: "diastolic"}, &core.NumberField{Name: "pulse"},
		&core.TextField{Name: "status"},
	)
	collection.AddIndex("idx_readings_patient", false, "patient, kind, measured_at", "")
	collection.AddIndex("idx_readings_measured", false, "measured_at", "")
	collection.AddIndex("idx_readings_key", true, "device, measured_at", "device != ''")
	if err := app.Save(collection); err != nil {
		return "", err
	}
	if err := seedPlain(app, patients, readings); err != nil {
		return "", err
	}
	users, err := app.FindCollectionByNameOrId("users")
	if err != nil {
		return "", err
	}
	user := core.NewRecord(users)
	user.SetEmail("bench@vigil.example")
	user.SetPassword("bench-password-1234")
	if err := app.Save(user); err != nil {
		return "", err
	}
	return user.NewStaticAuthToken(24 * time.Hour)
}

// seedPlain makes a list of patients with a score and a name in clear, as one would without encryption, and readings.
func seedPlain(app core.App, patients, readings int) error {
	list := core.NewBaseCollection(plainPatients)
	signedIn := "@request.auth.id != ''"
	list.ListRule = &signedIn
	list.Fields.Add(&core.TextField{Name: "name"}, &core.TextField{Name: "mrn"}, &core.NumberField{Name: "score"}, &core.NumberField{Name: "open"})
	list.AddIndex("idx_seeded_score", false, "score, open", "")
	if err := app.Save(list); err != nil {
		return err
	}
	for _, part := range []struct {
		rows int
		sql  string
	}{
		{patients, `INSERT INTO seeded (id, name, mrn, score, open) SELECT printf('p%014d', i), 'Given' || (i % 997) || ' Family' || (i * 7919 % 100003),
			printf('MRN-%08d', i), i * 7919 % 101, i % 5 FROM n`},
		{readings, `INSERT INTO readings (id, patient, kind, measured_at, device, systolic, diastolic, pulse, status)
			SELECT printf('o%014d', i), printf('p%014d', i % {:patients} + 1), 'blood_pressure',
				strftime('%Y-%m-%d %H:%M:%fZ', 1700000000 + i * 60, 'unixepoch'), '', 120, 80, 70, 'final' FROM n`},
	} {
		query := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {:rows}) ` + part.sql
		if _, err := app.NonconcurrentDB().NewQuery(query).Bind(dbx.Params{"rows": max(part.rows, 1), "patients": max(patients, 1)}).Execute(); err != nil {
			return err
		}
	}
	return nil
}
