package phi_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"github.com/vigilhealth/vigil/internal/phi"
)

func derived(t *testing.T, r *phi.KeyRing, keyID, label string) []byte {
	t.Helper()
	secret, ok := r.Derive(keyID, label)
	if !ok || len(secret) != phi.KeySize {
		t.Fatalf("%d bytes of key %s, %v", len(secret), keyID, ok)
	}
	return secret
}

// A derived secret depends only on its key and label, not on the order of the ring or its other keys.
func TestDeriveDependsOnOneKey(t *testing.T) {
	alone, both := ring(t, key("a", 1)), ring(t, key("b", 2), key("a", 1))
	of := derived(t, alone, "a", "access token")
	if !bytes.Equal(of, derived(t, both, "a", "access token")) {
		t.Error("another ring derives a different secret from the same key")
	}
	for name, other := range map[string][]byte{
		"label": derived(t, alone, "a", "file token"),
		"key":   derived(t, both, "b", "access token"),
		"bytes": derived(t, ring(t, key("a", 9)), "a", "access token"),
	} {
		if bytes.Equal(of, other) {
			t.Errorf("another %s gives the same secret", name)
		}
	}
	if secret, ok := alone.Derive("b", "access token"); ok || secret != nil {
		t.Error("a key that is not in the ring derived a secret")
	}
	of[0]++
	if bytes.Equal(of, derived(t, alone, "a", "access token")) {
		t.Error("changing the returned secret changes the cached one")
	}
}

// TestDeriveKnownValue checks the value that earlier releases derived: HKDF-SHA-256 of 32 bytes of 7, without salt.
func TestDeriveKnownValue(t *testing.T) {
	const known = "93272133ee09b25c0a079f833e16b6400a6192084095e23d1dd493d45aeeae2e"
	if got := hex.EncodeToString(derived(t, ring(t, key("k-1", 7)), "k-1", "access token")); got != known {
		t.Errorf("derived %s", got)
	}
}

func TestDeriveConcurrently(t *testing.T) {
	r := ring(t, key("a", 1))
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			if _, ok := r.Derive("a", fmt.Sprint(i%2)); !ok {
				t.Error("nothing derived")
			}
		})
	}
	callers.Wait()
	if shown := fmt.Sprintf("%v %+v %#v", r, r, r); bytes.Contains([]byte(shown), derived(t, r, "a", "0")) || len(shown) > 40 {
		t.Errorf("the ring prints %q", shown)
	}
}

func BenchmarkDerive(b *testing.B) {
	r := ring(b, key("a", 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := r.Derive("a", "access token"); !ok {
			b.Fatal("nothing derived")
		}
	}
}

func TestCheckValueDistinguishesKeys(t *testing.T) {
	r := ring(t, key("b", 2), key("a", 1))
	of, err := r.CheckValue("a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.CheckValue("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.CheckValue("c"); err == nil {
		t.Error("a missing key has a check value")
	}
	for name, tc := range map[string]struct {
		ring  *phi.KeyRing
		check string
		want  bool
	}{
		"same key":            {ring(t, key("a", 1)), of, true},
		"other bytes":         {ring(t, key("a", 9)), of, false},
		"missing":             {ring(t, key("b", 2)), of, false},
		"of another key":      {r, other, false},
		"of another place":    {r, seal(t, ring(t, key("a", 1)), "vigil", "note", "a"), false},
		"of another text":     {r, seal(t, ring(t, key("a", 1)), "virgil", "ring_key", "a"), false},
		"nothing":             {r, "", false},
		"no sealed value":     {r, "vigil", false},
		"under a swapped key": {ring(t, key("a", 2), key("b", 1)), of, false},
	} {
		if got := tc.ring.MatchesCheckValue("a", tc.check); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if got := fmt.Sprint(r.KeyIDs(), r.Has("a"), r.Has("c")); got != "[b a] true false" {
		t.Errorf("the ring has %s", got)
	}
}
