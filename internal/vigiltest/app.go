// Package vigiltest knows how to make what tests need: a fresh app with the real schema in milliseconds, people with
// tokens, and counts of every row. It knows no rule of the service, and refuses to import a door: the doors' own
// tests use it.
package vigiltest

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/sqlite"
	_ "github.com/vigilhealth/vigil/migrations"
)

// Clock is the moment at which tests happen.
var Clock = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

// Sealer is the same in every test binary: its keys are fixed.
var Sealer = sync.OnceValue(func() *phi.Sealer {
	ring, err := phi.NewKeyRing(phi.Key{ID: "test", Secret: [phi.KeySize]byte([]byte("vigiltest's key, for no real use"))})
	if err != nil {
		panic(err)
	}
	index, err := ring.OpenIndexKey(sealedIndexKey)
	if err != nil {
		panic(err)
	}
	sealer, err := phi.NewSealer(ring, index)
	if err != nil {
		panic(err)
	}
	return sealer
})

// sealedIndexKey is an index key, sealed under the key above.
const sealedIndexKey = "v1:test:of-OVKqdRMoBHFS1:ll5OmG0HuyXBk97Aj8HGbPGtcLsaJrGlIBHiLIBdVap-fTDwvfN3Y5PY5yeoQUUV"

// NewApp returns a fresh app as the migrations leave it, gone when the test ends. It fits
// tests.ApiScenario as TestAppFactory. Passwords are hashed at bcrypt's lowest cost.
// It is put together here, for PocketBase's own way copies the folder, looks for migrations, counts events and reads all collections twice:
// together a quarter of what the tests of routes take under the race detector.
func NewApp(t testing.TB) *tests.TestApp {
	t.Helper()
	files, err := template()
	if err != nil {
		t.Fatalf("build the template app: %v", err)
	}
	dir := t.TempDir()
	if err := files.write(dir); err != nil {
		t.Fatal(err)
	}
	app := &tests.TestApp{BaseApp: core.NewBaseApp(core.BaseAppConfig{DataDir: dir, DBConnect: connect}), TestMailer: &tests.TestMailer{}}
	app.OnMailerSend().BindFunc(func(e *core.MailerEvent) error {
		e.Mailer = app.TestMailer
		return e.Next()
	})
	app.OnBootstrap().Unbind("__pbCollectionSystemHook__") // what it reads is read before
	app.OnServe().Unbind("__pbCronStart__")                // its clock is the wall's, and what it runs may be at it when the test ends
	if err := app.Bootstrap(); err != nil {
		t.Fatalf("start the test app: %v", err)
	}
	app.Settings().Logs.MaxDays = 0 // written after the test's end
	t.Cleanup(func() {
		if app.IsBootstrapped() { // tests.ApiScenario cleans up by itself
			app.Cleanup()
		}
	})
	return app
}

// connect opens databases as the service does, but for waiting for the disk.
func connect(path string) (*dbx.DB, error) { return sqlite.Open(path, "OFF") }

// beginTrail stores the index key of all tests and begins the audit trail with it, as the service does at its first start.
func beginTrail(app core.App) error {
	_, err := app.DB().Insert("sealed_keys", dbx.Params{"name": "blind_index", "sealed": sealedIndexKey}).Execute()
	return errors.Join(err, audit.Begin(app))
}

func hashCheaply(app core.App) error {
	for _, name := range []string{collections.Users, core.CollectionNameSuperusers} {
		accounts, err := app.FindCollectionByNameOrId(name)
		if err != nil {
			return err
		}
		password, ok := accounts.Fields.GetByName(core.FieldNamePassword).(*core.PasswordField)
		if !ok {
			return fmt.Errorf("%s has no password field", name)
		}
		password.Cost = bcrypt.MinCost
		if err := app.Save(accounts); err != nil {
			return err
		}
	}
	return nil
}

// RowCounts counts the rows of every collection and plain table of ours, by name; what triggers tell of them is counted by its own tests.
func RowCounts(t testing.TB, app core.App) map[string]int {
	t.Helper()
	var tables []string
	err := app.DB().NewQuery(`SELECT name FROM sqlite_master WHERE type = 'table'`).Column(&tables)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, table := range tables {
		if strings.HasPrefix(table, "_") || strings.HasPrefix(table, "sqlite_") {
			continue // PocketBase's and SQLite's own
		}
		if table == "changes" {
			continue
		}
		var rows int
		if err := app.DB().NewQuery(`SELECT COUNT(*) FROM "` + table + `"`).Row(&rows); err != nil {
			t.Fatal(err)
		}
		counts[table] = rows
	}
	return counts
}

// RowsAdded says by how much each table grew since before; tables that did not change are left out.
func RowsAdded(t testing.TB, app core.App, before map[string]int) map[string]int {
	t.Helper()
	added := RowCounts(t, app)
	for table := range added {
		added[table] -= before[table]
	}
	maps.DeleteFunc(added, func(_ string, n int) bool { return n == 0 })
	return added
}

// Password is what every user of [User] signs in with, unless said otherwise.
const Password = "Correct-Horse-42"

// UserOption changes a user before it is stored.
type UserOption func(*core.Record)

// Email gives the user another address than <role><number>@vigil.test.
func Email(address string) UserOption { return func(r *core.Record) { r.SetEmail(address) } }

// Inactive makes an account that cannot be used.
func Inactive() UserOption { return func(r *core.Record) { r.Set("is_active", false) } }

// PortalOf links the account to a patient.
func PortalOf(patientID string) UserOption {
	return func(r *core.Record) { r.Set("patient", patientID) }
}

// TwoFactor turns on the second factor with the given base32 secret.
func TwoFactor(secret string) UserOption {
	return func(r *core.Record) {
		r.Set("two_factor_enabled", true)
		r.Set("totp_secret", secret)
	}
}

// With sets any field.
func With(field string, value any) UserOption { return func(r *core.Record) { r.Set(field, value) } }

// passwordHash is of [Password]. It is made once: hashing is meant to take long, and with the race detector it does.
var passwordHash = sync.OnceValue(func() string {
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.MinCost)
	if err != nil {
		panic(err)
	}
	return string(hash)
})

// User stores an active user of a role, made at [Clock].
func User(t testing.TB, app core.App, role authz.Role, options ...UserOption) *collections.User {
	t.Helper()
	user, err := collections.NewUser(app)
	if err != nil {
		t.Fatal(err)
	}
	user.SetEmail(fmt.Sprintf("%s%d@vigil.test", role, user.Number()))
	user.SetRaw(core.FieldNamePassword, &core.PasswordFieldValue{Hash: passwordHash()})
	user.Set("first_name", "Test")
	user.Set("last_name", "Person")
	user.Set("role", string(role))
	user.Set("is_active", true)
	user.Set("created_at", collections.Instant(Clock))
	user.Set("updated_at", collections.Instant(Clock))
	for _, option := range options {
		option(user.ProxyRecord())
	}
	if err := app.Save(user); err != nil {
		t.Fatalf("store a %s: %v", role, err)
	}
	return user
}

// Token is an access token of the user, issued now and good for fifteen minutes, under the keys of [Sealer].
func Token(t testing.TB, user *collections.User, now time.Time) string {
	t.Helper()
	users := user.Collection()
	const life = 15 * time.Minute
	token, err := auth.NewSigner(Sealer()).Sign(
		auth.TokenClaims{Kind: auth.AccessToken, Collection: users.Id, Holder: user.Id, IssuedAt: now, ExpiresAt: now.Add(life)},
		auth.Account{TokenKey: user.TokenKey(), Secret: users.AuthToken.Secret, Life: life})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Patient stores an active patient, Ada Lovelace born 1950 unless the columns say otherwise, and returns the id.
func Patient(t testing.TB, app core.App, columns dbx.Params) string {
	t.Helper()
	record, err := collections.New(app, collections.Patients)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(map[string]any{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1950-12-10", "gender": "female", "active": true})
	record.Load(columns)
	if err := app.Save(record); err != nil {
		t.Fatalf("store a patient: %v", err)
	}
	return record.Id
}

// Assign gives a patient a device from a moment on.
func Assign(t testing.TB, app core.App, device, patient string, from time.Time) {
	t.Helper()
	row := dbx.Params{"device_id": device, "patient": patient, "assigned_at": collections.Instant(from)}
	if _, err := app.DB().Insert(collections.DeviceAssignments, row).Execute(); err != nil {
		t.Fatal(err)
	}
}

// Code is the code of a refusal; "" for any other error and for none.
func Code(err error) string {
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return refused.Code
	}
	return ""
}
