package collections_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func ring(t *testing.T, ids ...string) *phi.KeyRing {
	t.Helper()
	var keys []phi.Key
	for _, id := range ids {
		keys = append(keys, phi.Key{ID: id, Secret: [phi.KeySize]byte([]byte(strings.Repeat(id, phi.KeySize)[:phi.KeySize]))})
	}
	r, err := phi.NewKeyRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The index key is created once, opens with every ring that has its key, and rejects a foreign ring.
func TestIndexKeyMatchesRing(t *testing.T) {
	app := vigiltest.NewApp(t)
	if _, err := app.DB().Delete("sealed_keys", dbx.NewExp("TRUE")).Execute(); err != nil { // simulates a first start
		t.Fatal(err)
	}
	first, err := collections.LoadIndexKey(app, ring(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, ids := range [][]string{{"a"}, {"b", "a"}} {
		if again, err := collections.LoadIndexKey(app, ring(t, ids...)); err != nil || again != first {
			t.Errorf("with the keys %v it is another key: %v", ids, err)
		}
	}
	if _, err := collections.LoadIndexKey(app, ring(t, "b")); !errors.Is(err, phi.ErrUnknownKey) {
		t.Errorf("a foreign ring: %v", err)
	}
	imposter, err := phi.NewKeyRing(phi.Key{ID: "a", Secret: [phi.KeySize]byte([]byte("another secret of the same name."))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collections.LoadIndexKey(app, imposter); !errors.Is(err, phi.ErrAuthentication) || strings.Contains(err.Error(), "\n") {
		t.Errorf("another key of the same name: %v", err)
	}
	if err := collections.ResealIndexKey(app, ring(t, "b", "a")); err != nil {
		t.Fatal(err)
	}
	if again, err := collections.LoadIndexKey(app, ring(t, "b")); err != nil || again != first {
		t.Errorf("after resealing: %v", err)
	}
	for _, damaged := range []string{"", "v1:b:x:y", "plain"} {
		if _, err := app.DB().Update("sealed_keys", dbx.Params{"sealed": damaged}, dbx.NewExp("TRUE")).Execute(); err != nil {
			t.Fatal(err)
		}
		if _, err := collections.LoadIndexKey(app, ring(t, "b")); err == nil {
			t.Errorf("a damaged index key %q was accepted", damaged)
		}
	}
}

// A missing index key of a database in use is not replaced: a new key would not match any stored blind index or hash.
func TestIndexKeyIsNotReplaced(t *testing.T) {
	app := vigiltest.NewApp(t)
	vigiltest.User(t, app, authz.Nurse)
	if _, err := app.DB().Delete("sealed_keys", dbx.NewExp("TRUE")).Execute(); err != nil {
		t.Fatal(err)
	}
	if _, err := collections.LoadIndexKey(app, ring(t, "a")); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a database in use got another index key: %v", err)
	}
}
