package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/cmd/slowcommits"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// plain starts PocketBase with its defaults, or with Vigil's durability (full).
func (b built) plain(ctx context.Context, full bool, patients, readings int) (*server, error) {
	dir, err := os.MkdirTemp(b.scratch, "plain-*")
	if err != nil {
		return nil, err
	}
	s := &server{addr: freeAddr(), dir: dir}
	return s, s.startPlain(ctx, b, b.plainBinary, dir, "-patients", strconv.Itoa(patients), "-readings", strconv.Itoa(readings), "-full="+strconv.FormatBool(full))
}

// sameSQLite names the plain server that uses Vigil's SQLite.
const sameSQLite = "plain NORMAL, SQLite in C"

// plainOnFolder starts a second plain server with Vigil's SQLite on the folder of a running one; both only read. It returns nil
// when the running one already has that SQLite.
func (b built) plainOnFolder(ctx context.Context, plain *server) (*server, error) {
	if !sqlite.InC {
		return nil, nil
	}
	s := &server{addr: freeAddr()} // the folder is removed by its owner
	return s, s.startPlain(ctx, b, b.self, plain.dir, "-filled")
}

// sqliteOf returns the SQLite version of another build of this program.
func sqliteOf(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "sqlite").Output()
	if err != nil {
		return "SQLite unknown"
	}
	return strings.TrimSpace(string(out))
}

func (s *server) startPlain(ctx context.Context, b built, program, dir string, options ...string) error {
	s.cmd = exec.CommandContext(ctx, program, append([]string{"plain", "-dir", dir, "-http", s.addr}, options...)...)
	s.cmd.Env = b.environ()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		s.token = lines.Text()
	}
	go func() {
		for lines.Scan() { // drains the pipe
		}
	}()
	return s.await(ctx, "/api/health")
}

// The plain server's two collections, and its user.
const (
	plainReadings = "readings"
	plainPatients = "seeded"
	plainUser     = "bench@vigil.example"
)

// numbers is the common table expression of statements for [loader.inChunks].
const numbers = `WITH RECURSIVE n(i) AS (SELECT {:from} UNION ALL SELECT i + 1 FROM n WHERE i < {:until}) `

// servePlain runs PocketBase with a collection that has the fields and indexes of a reading, and a patient list to compare
// triage with. The first line of its output is a user's token.
func servePlain(args []string) error {
	flags := flag.NewFlagSet("plain", flag.ExitOnError)
	dir, addr := flags.String("dir", "", "data folder"), flags.String("http", "", "address")
	patients, readings := flags.Int("patients", 1, "rows of the list"), flags.Int("readings", 1, "readings stored before")
	full, filled := flags.Bool("full", false, "flush every commit to disk"), flags.Bool("filled", false, "the folder is already seeded")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !*filled {
		if err := seedPlain(*dir, *patients, *readings); err != nil {
			return err
		}
	}
	slowcommits.Delay(os.Getenv(slowcommits.Setting))
	synchronous := "NORMAL"
	if *full {
		synchronous = "FULL"
	}
	settings := pocketbase.Config{DefaultDataDir: *dir, HideStartBanner: true, DBConnect: func(path string) (*dbx.DB, error) { return plainConnect(path, synchronous) }}
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

// seedPlain creates the two collections and the user, and fills them. Patients have a score and an unencrypted name.
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
	err := l.withoutIndexes(plainPatients, func() error {
		return l.inChunks(max(patients, 1), "plain patients", numbers+`INSERT INTO seeded (id, name, mrn, score, open)
			SELECT printf('p%014d', i + 1), 'Given' || (i % 997) || ' Family' || (i * 7919 % 100003), printf('MRN-%08d', i), i * 7919 % 101, i % 5 FROM n`, dbx.Params{})
	})
	if err != nil {
		return err
	}
	err = l.withoutIndexes(plainReadings, func() error {
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

// plainCollections defines readings with the fields and indexes of Vigil's, and the patient list.
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
