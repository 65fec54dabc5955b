package idempotency_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes/web/idempotency"
)

var now = vigiltest.Clock

// newProcess returns the keys of a service that has just started.
func newProcess() *idempotency.Keys { return idempotency.New(slog.New(slog.DiscardHandler)) }

var request = idempotency.Request{Caller: "user 1", Key: "k", Method: "POST", Target: "/api/v1/patients?", Body: []byte(`{}`)}

func begin(t *testing.T, k *idempotency.Keys, app core.App, at time.Time) *idempotency.Use {
	t.Helper()
	use, answered, err := k.Begin(app, request, at)
	if err != nil || answered != nil || use == nil {
		t.Fatalf("%v, %v, %v", use, answered, err)
	}
	return use
}

func refused(t *testing.T, k *idempotency.Keys, app core.App, r idempotency.Request, at time.Time, code string) {
	t.Helper()
	use, answered, err := k.Begin(app, r, at)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code || use != nil || answered != nil {
		t.Errorf("%v, %v, %v instead of %s", use, answered, err, code)
	}
}

func TestConcurrentUseIsRefused(t *testing.T) {
	app, k := vigiltest.NewApp(t), newProcess()
	use := begin(t, k, app, now)
	refused(t, k, app, request, now, "idempotency_in_progress")
	other := request
	other.Body = []byte(`{"a":1}`)
	refused(t, k, app, other, now, "idempotency_key_reused")
	if err := use.In(app).RunInTransaction(func(core.App) error { return nil }); err != nil {
		t.Fatal(err)
	}
	refused(t, k, app, request, now, "idempotency_in_progress") // reserved, and still running
	if err := use.Store(app, idempotency.Answer{Status: 201, Body: []byte("made")}); err != nil {
		t.Fatal(err)
	}
	if use, answered, err := k.Begin(app, request, now); err != nil || use != nil || answered == nil || answered.Status != 201 || string(answered.Body) != "made" {
		t.Errorf("%v %v %v", use, answered, err)
	}
	use.Release()
	use.Release()
	refused(t, k, app, other, now, "idempotency_key_reused")
}

// After a crash the outcome depends on whether a transaction of the request was committed.
func TestCrash(t *testing.T) {
	app := vigiltest.NewApp(t)
	begin(t, newProcess(), app, now) // crash before a commit

	use := begin(t, newProcess(), app, now)
	failed := errors.New("rolled back")
	if err := use.In(app).RunInTransaction(func(core.App) error { return failed }); !errors.Is(err, failed) || use.Stored() {
		t.Errorf("%v, stored: %t", err, use.Stored())
	} // crash again

	use = begin(t, newProcess(), app, now)
	inner := 0
	for range 2 {
		err := use.In(app).RunInTransaction(func(tx core.App) error {
			return tx.RunInTransaction(func(core.App) error { inner++; return nil })
		})
		if err != nil || !use.Stored() {
			t.Fatal(err, use.Stored())
		}
	} // crash after a commit, before the answer
	if inner != 2 {
		t.Errorf("%d transactions", inner)
	}
	refused(t, newProcess(), app, request, now.Add(time.Hour), "idempotency_answer_lost")
	refused(t, newProcess(), app, request, now.Add(24*time.Hour-time.Second), "idempotency_answer_lost")
	next := begin(t, newProcess(), app, now.Add(24*time.Hour))
	if err := next.In(app).RunInTransaction(func(core.App) error { return nil }); err != nil {
		t.Error(err)
	}
	refused(t, newProcess(), app, request, now.Add(47*time.Hour), "idempotency_answer_lost")
}

// Two processes on one database do not both store something under one key.
func TestTwoProcesses(t *testing.T) {
	app := vigiltest.NewApp(t)
	one, two := begin(t, newProcess(), app, now), begin(t, newProcess(), app, now)
	if err := one.In(app).RunInTransaction(func(core.App) error { return nil }); err != nil {
		t.Fatal(err)
	}
	did := false
	err := two.In(app).RunInTransaction(func(core.App) error { did = true; return nil })
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "idempotency_in_progress" || did {
		t.Errorf("%v, done: %t", err, did)
	}
	if err := two.Drop(app); err != nil { // must not delete the reservation of the other process
		t.Fatal(err)
	}
	refused(t, newProcess(), app, request, now, "idempotency_answer_lost")
}

func TestDroppedKeyCanBeUsedAgain(t *testing.T) {
	app, k := vigiltest.NewApp(t), newProcess()
	use := begin(t, k, app, now)
	if err := use.In(app).RunInTransaction(func(core.App) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := use.Drop(app); err != nil {
		t.Fatal(err)
	}
	use.Release()
	use = begin(t, k, app, now)
	if err := use.StoreUnknown(app); err != nil {
		t.Fatal(err)
	}
	use.Release()
	refused(t, k, app, request, now, "idempotency_answer_lost")
}

// An answer that cannot be decrypted counts as lost.
func TestUnreadableAnswerIsLost(t *testing.T) {
	app, k := vigiltest.NewApp(t), newProcess()
	use := begin(t, k, app, now)
	if err := use.Store(app, idempotency.Answer{Status: 200, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	use.Release()
	sealed, err := collections.Seal("v2:held:AAAAAAAAAAAAAAAA:AAAA", "another purpose", "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.DB().NewQuery("UPDATE idempotency_keys SET answer = '" + sealed + "'").Execute(); err != nil {
		t.Fatal(err)
	}
	refused(t, k, app, request, now, "idempotency_answer_lost")
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"", "a", `"a"`, `"a\"b\\c"`, `"a`, `"a\n"`, `"a";p=1`, `"a", "b"`, "8e03978e-40d5-43e8-bc93-6894a57f9324", " \t", "ü", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		key, err := idempotency.ParseKey([]string{line})
		if err != nil {
			var refused *fault.Error
			if key != "" || !errors.As(err, &refused) || refused.Fields["Idempotency-Key"] == nil {
				t.Errorf("%q: %q, %v", line, key, err)
			}
			return
		}
		if key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is the key %q", line, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := idempotency.ParseKey([]string{quoted}); err != nil || again != key {
			t.Errorf("%q in quotes is %q, %v", key, again, err)
		}
	})
}
