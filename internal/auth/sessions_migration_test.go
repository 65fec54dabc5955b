package auth_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Registrations from before go to the one session that had an access token then, and fall silent where that was signed out; others stay as they are.
func TestEarlierRegistrationsFindTheirSession(t *testing.T) {
	collections.UseSealer(vigiltest.Sealer())
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: t.TempDir(), DBConnect: sqlite.Connect})
	if err := app.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.ClearBootstrap() })
	if err := app.RunSystemMigrations(); err != nil {
		t.Fatal(err)
	}
	var before core.MigrationsList
	for _, step := range core.AppMigrations.Items() {
		if step.File < "1767225975_sessions.go" {
			before.Register(step.Up, step.Down, step.File)
		}
	}
	if _, err := core.NewMigrationsRunner(app, before).Up(); err != nil {
		t.Fatal(err)
	}
	insert := func(table string, columns dbx.Params) {
		t.Helper()
		if _, err := app.DB().Insert(table, columns).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	session := func(user, family, state, because string, minutes int) {
		id := core.GenerateDefaultRandomId()
		insert(collections.RefreshTokens, dbx.Params{
			"id": id, "user": user, "token_hash": id, "family": family, "state": state, "revoked_because": because,
			"issued_at": collections.Instant(clock.Add(time.Duration(minutes) * time.Minute)),
		})
	}
	session("ada", "desk", "valid", "", -40)
	session("ada", "phone", "rotated", "", -14)
	session("ada", "phone", "valid", "", 30)
	session("ben", "ward", "revoked", "logout", -1)
	session("cyd", "one", "valid", "", -1)
	session("cyd", "two", "valid", "", -2)
	session("dan", "late", "valid", "", 1)
	for n, user := range []string{"ada", "ben", "cyd", "dan"} {
		insert(collections.PushTokens, dbx.Params{
			"id": user, "user": user, "device_id": "d", "active": true, "token_hash": n, "updated_at": collections.Instant(clock),
		})
	}
	if err := app.RunAppMigrations(); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"ada": "phone/1", "ben": "ward/0", "cyd": "/1", "dan": "/1"} {
		var got string
		err := app.DB().NewQuery("SELECT session || '/' || active FROM push_tokens WHERE id = {:id}").Bind(dbx.Params{"id": user}).Row(&got)
		if err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", user, got, want, err)
		}
	}
}
