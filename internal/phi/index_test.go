package phi_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/vigilhealth/vigil/internal/phi"
)

func sealer(t testing.TB, r *phi.KeyRing, key phi.IndexKey) *phi.Sealer {
	t.Helper()
	s, err := phi.NewSealer(r, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestIndexSurvivesRotation rotates a key completely: the indexes do not change, and the old key is removed.
func TestIndexSurvivesRotation(t *testing.T) {
	old, fresh := key("2025", 1), key("2026", 2)
	first := ring(t, old)
	made := phi.NewIndexKey()
	stored, err := first.SealIndexKey(made)
	if err != nil {
		t.Fatal(err)
	}
	before := sealer(t, first, made)

	during := ring(t, fresh, old)
	if !during.NeedsRotation(stored) {
		t.Fatal("the stored index key must be re-sealed with everything else")
	}
	opened, err := during.OpenIndexKey(stored)
	if err != nil {
		t.Fatal(err)
	}
	if stored, err = during.SealIndexKey(opened); err != nil {
		t.Fatal(err)
	}

	last := ring(t, fresh)
	if opened, err = last.OpenIndexKey(stored); err != nil {
		t.Fatal(err)
	}
	after := sealer(t, last, opened)
	if before.Index("ssn", "123456789") != after.Index("ssn", "123456789") {
		t.Fatal("the index changed with the ring")
	}
	if before.BackupCodeHash("7", "abcde12345") != after.BackupCodeHash("7", "abcde12345") || before.LoginKey("a@b") != after.LoginKey("a@b") {
		t.Fatal("a keyed hash changed with the ring")
	}
}

func TestOpenIndexKeyRefuses(t *testing.T) {
	r := ring(t, key("a", 1))
	short := seal(t, r, "too short", "index_key", "1")
	elsewhere := seal(t, r, string(make([]byte, phi.KeySize)), "index_key", "3")
	for sealed, want := range map[string]error{"": phi.ErrFormat, short: phi.ErrFormat, elsewhere: phi.ErrAuthentication} {
		if _, err := r.OpenIndexKey(sealed); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestNewSealerRefuses(t *testing.T) {
	if _, err := phi.NewSealer(nil, phi.NewIndexKey()); err == nil {
		t.Error("accepted without a ring")
	}
	if _, err := phi.NewSealer(ring(t, key("a", 1)), phi.IndexKey{}); err == nil {
		t.Error("accepted without an index key")
	}
}

func TestIndex(t *testing.T) {
	r := ring(t, key("a", 1))
	s, other := sealer(t, r, phi.NewIndexKey()), sealer(t, r, phi.NewIndexKey())
	index := s.Index("ssn", "123456789")
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`).MatchString(index) {
		t.Fatalf("unexpected form %q", index)
	}
	if index != s.Index("ssn", "123456789") {
		t.Error("equal values must have equal indexes")
	}
	for name, different := range map[string]string{
		"value":       s.Index("ssn", "123456780"),
		"label":       s.Index("phone", "123456789"),
		"database":    other.Index("ssn", "123456789"),
		"backup code": s.BackupCodeHash("ssn", "123456789"),
		"login key":   s.LoginKey("ssn\x00123456789"),
	} {
		if different == index {
			t.Errorf("another %s gave the same index", name)
		}
	}
	if s.Index("ssn", "") != "" {
		t.Error("an absent value has no index")
	}
	if s.BackupCodeHash("1", "abcde12345") == s.BackupCodeHash("2", "abcde12345") {
		t.Error("equal backup codes of two users look alike")
	}
}

func TestDeriveKey(t *testing.T) {
	index := phi.NewIndexKey()
	s := sealer(t, ring(t, key("a", 1)), index)
	cursor, err := s.DeriveKey(phi.CursorKeyLabel)
	if err != nil || len(cursor) != phi.KeySize {
		t.Fatalf("%d bytes, %v", len(cursor), err)
	}
	again, err := sealer(t, ring(t, key("b", 2)), index).DeriveKey(phi.CursorKeyLabel)
	if err != nil || !bytes.Equal(cursor, again) {
		t.Fatalf("the key depends on the ring (%v)", err)
	}
	topic, err := s.DeriveKey(phi.PushTopicKeyLabel)
	if err != nil || bytes.Equal(cursor, topic) {
		t.Fatalf("two labels share a key (%v)", err)
	}
}

func BenchmarkIndex(b *testing.B) {
	s := sealer(b, ring(b, key("a", 1)), phi.NewIndexKey())
	b.ReportAllocs()
	for b.Loop() {
		s.Index("email", "ada.lovelace@example.org")
	}
}
