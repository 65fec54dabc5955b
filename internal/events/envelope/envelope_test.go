package envelope_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/events/envelope"
)

const marker = "systolic-marker-195"

var sent = envelope.Envelope{
	Vendor: "tenovi", Body: []byte(`{"note":"` + marker + `"}`), ReceivedAt: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), FromAddress: "192.0.2.7",
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	made, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSealAndOpen(t *testing.T) {
	former, current := identity(t), identity(t)
	sealed, err := envelope.Seal(sent, former.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte(marker)) || bytes.Contains(sealed, []byte("tenovi")) {
		t.Error("the sealed event can be read")
	}
	opened, err := envelope.Open(sealed, current, former)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, opened); diff != "" {
		t.Error(diff)
	}
	if _, err := envelope.Open(sealed, current); !errors.Is(err, envelope.ErrNoIdentity) {
		t.Errorf("after the key was retired: %v", err)
	}
}

func TestDamagedEnvelopes(t *testing.T) {
	owner := identity(t)
	sealed, err := envelope.Seal(sent, owner.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	for n := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[n] ^= 1
		if _, err := envelope.Open(damaged, owner); err == nil {
			t.Fatalf("an envelope with another byte %d is opened", n)
		}
	}
	for _, sealed := range [][]byte{nil, []byte("x"), sealed[:len(sealed)-1]} {
		if _, err := envelope.Open(sealed, owner); err == nil || errors.Is(err, envelope.ErrNoIdentity) {
			t.Errorf("%d bytes: %v", len(sealed), err)
		}
	}
	if _, err := envelope.Seal(sent, "age1wrong"); err == nil {
		t.Error("an event is sealed for a wrong recipient")
	}
}

func TestEnvelopeRefusesToPrint(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("event", slog.Any("envelope", sent))
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		fmt.Fprintf(&out, format, sent)
	}
	fmt.Fprintf(&out, "%v", &sent)
	if bytes.Contains(out.Bytes(), []byte(marker)) || bytes.Contains(out.Bytes(), []byte("192.0.2.7")) {
		t.Errorf("an envelope prints: %s", out.String())
	}
}
