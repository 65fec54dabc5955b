// Package vigiltest makes what tests need: an app with the real schema in milliseconds, users with tokens, patients, and row
// counts. It contains no rule of the service and does not import the routes; their tests use it.
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

// Clock is the time at which tests run.
var Clock = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

// Sealer has fixed keys, so that every test binary uses the same ones.
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

// sealedIndexKey is a blind index key, sealed under the key of [Sealer].
const sealedIndexKey = "v1:test:of-OVKqdRMoBHFS1:ll5OmG0HuyXBk97Aj8HGbPGtcLsaJrGlIBHiLIBdVap-fTDwvfN3Y5PY5yeoQUUV"

// NewApp returns a new, migrated app that is removed when the test ends. It fits tests.ApiScenario as TestAppFactory.
// Passwords are hashed at bcrypt's lowest cost. It does not use tests.NewTestApp, which copies the folder, checks for
// migrations, counts events and reads all collections twice: a quarter of the time of the route tests under the race
// detector.
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
	app.OnBootstrap().Unbind("__pbCollectionSystemHook__") // the collections are already loaded
	app.OnServe().Unbind("__pbCronStart__")                // uses the wall clock, and its jobs may still run when the test ends
	if err := app.Bootstrap(); err != nil {
		t.Fatalf("start the test app: %v", err)
	}
	app.Settings().Logs.MaxDays = 0 // logs are written after the test ends
	t.Cleanup(func() {
		if app.IsBootstrapped() { // tests.ApiScenario has cleaned up
			app.Cleanup()
		}
	})
	return app
}

// connect opens a database as the service does, but without flushing to disk.
func connect(path string) (*dbx.DB, error) { return sqlite.Open(path, "OFF") }

// startAuditTrail stores the blind index key of all tests and starts the audit trail with it, as the service does at its first
// start.
func startAuditTrail(app core.App) error {
	_, err := app.DB().Insert("sealed_keys", dbx.Params{"name": "blind_index", "sealed": sealedIndexKey}).Execute()
	return errors.Join(err, audit.EnsureState(app))
}

func setLowestHashCost(app core.App) error {
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

// RowCounts returns the number of rows of every collection and table of Vigil. The tables of change triggers have their own
// tests.
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
			continue // internal tables of PocketBase and SQLite
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

// RowsAdded returns how many rows each table gained; unchanged tables are omitted.
func RowsAdded(t testing.TB, app core.App, before map[string]int) map[string]int {
	t.Helper()
	added := RowCounts(t, app)
	for table := range added {
		added[table] -= before[table]
	}
	maps.DeleteFunc(added, func(_ string, n int) bool { return n == 0 })
	return added
}

// Password is the default password of [User].
const Password = "Correct-Horse-42"

// UserOption changes a user before it is stored.
type UserOption func(*core.Record)

// Email replaces the default address, <role><number>@vigil.test.
func Email(address string) UserOption { return func(r *core.Record) { r.SetEmail(address) } }

// Inactive deactivates the account.
func Inactive() UserOption { return func(r *core.Record) { r.Set("is_active", false) } }

// PortalOf links the account to a patient.
func PortalOf(patientID string) UserOption {
	return func(r *core.Record) { r.Set("patient", patientID) }
}

// TwoFactor enables the second factor with the given base32 secret.
func TwoFactor(secret string) UserOption {
	return func(r *core.Record) {
		r.Set("two_factor_enabled", true)
		r.Set("totp_secret", secret)
	}
}

// With sets any field.
func With(field string, value any) UserOption { return func(r *core.Record) { r.Set(field, value) } }

// passwordHash is the hash of [Password]. It is computed once, because bcrypt is slow, above all under the race detector.
var passwordHash = sync.OnceValue(func() string {
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.MinCost)
	if err != nil {
		panic(err)
	}
	return string(hash)
})

// User stores an active user of a role, created at [Clock].
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
	user.Set("created_at", collections.FormatInstant(Clock))
	user.Set("updated_at", collections.FormatInstant(Clock))
	for _, option := range options {
		option(user.ProxyRecord())
	}
	if err := app.Save(user); err != nil {
		t.Fatalf("store a %s: %v", role, err)
	}
	return user
}

// Token returns an access token of the user, issued at now and valid for 15 minutes, under the keys of [Sealer].
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

// Patient stores an active patient and returns the id. The default is Ada Lovelace, born 1950; columns override it.
func Patient(t testing.TB, app core.App, columns dbx.Params) string {
	t.Helper()
	record, err := collections.NewRecord(app, collections.Patients)
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

// Assign assigns a device to a patient from a time on.
func Assign(t testing.TB, app core.App, device, patient string, from time.Time) {
	t.Helper()
	row := dbx.Params{"device_id": device, "patient": patient, "assigned_at": collections.FormatInstant(from)}
	if _, err := app.DB().Insert(collections.DeviceAssignments, row).Execute(); err != nil {
		t.Fatal(err)
	}
}

// Code returns the code of a fault, or "" for other errors and nil.
func Code(err error) string {
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return refused.Code
	}
	return ""
}
