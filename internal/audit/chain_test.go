package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/json/jsontext"
	"testing"

	"github.com/vigilhealth/vigil/collections"
)

// The test vector of docs/decisions/security.md, "Hash chain", with a shortened record.
func TestChainHashVector(t *testing.T) {
	got := chainHash(sha256.New(), firstPrevious, []member{
		{name: "action", text: "E"},
		{name: "actor", text: "user:1"},
		{name: "event", text: "auth.login"},
		{name: "id", text: "1", number: true},
		{name: "outcome", text: "0"},
		{name: "patient_id"},
		{name: "recorded_at", text: "2026-01-15T13:45:00.000Z"},
		{name: "resource", text: "User/1"},
	})
	if want := "69bb7d150c98994d43d3b01907ed8ddc3e74ffec62846e20fa015a76c087d244"; got != want {
		t.Errorf("hash is %s, want %s", got, want)
	}
}

// The encoded object equals the standard library's RFC 8785 form of the same values.
func TestRowHashIsCanonical(t *testing.T) {
	row := collections.AuditRow{
		ID: collections.NumberID(42), RecordedAt: "2026-01-15T13:45:00.000000Z", Event: "patient.read", Action: "R", Outcome: "0",
		ActorType: "user", ActorID: "7", ActorEmail: "zoë+\u2028<&>@example.com", ActorRole: "nurse", ResourceType: "Patient",
		Client: "agent \"quoted\" \\ \x00\x1f\t\n\x7f 😀", SourceIP: "2001:db8::1", Changes: "v1:k:n:c",
	}
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	raw, err := json.Marshal(map[string]any{
		"id": row.Number(), "recorded_at": row.RecordedAt, "event": row.Event, "action": row.Action, "outcome": row.Outcome,
		"actor_type": row.ActorType, "actor_id": row.ActorID, "actor_email": row.ActorEmail, "actor_role": row.ActorRole,
		"resource_type": row.ResourceType, "resource_id": text(row.ResourceID), "patient_id": text(row.Patient), "source_ip": row.SourceIP,
		"client": row.Client, "request_id": text(row.RequestID), "reason": text(row.Reason), "changes": row.Changes,
	})
	if err != nil {
		t.Fatal(err)
	}
	canonical := jsontext.Value(raw)
	if err := canonical.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(firstPrevious + string(canonical)))
	if got, want := rowHash(sha256.New(), firstPrevious, row), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("hash is %s, want %s of %s", got, want, canonical)
	}
}

func TestActions(t *testing.T) {
	for event, want := range map[Event]Action{
		Login: Execute, PatientCreate: Create, PatientRead: Read, PatientSearch: Execute, PatientArchive: Update,
		PatientDelete: Delete, ObservationCreate: Create, BillingExport: Read, BillingRun: Execute, WebhookRejected: Execute,
		UserDeactivate: Update, ConsentGrant: Create, ConsentRevoke: Update, EMRTransmit: Execute, PasswordReset: Execute,
	} {
		if got := event.Action(); got != want {
			t.Errorf("%s is %s, want %s", event, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, test := range []struct {
		text string
		max  int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"äöüß", 3, "äöü"}, {"äöü", 3, "äöü"}, {"a\xffb", 5, "a\uFFFDb"},
	} {
		if got := clip(test.text, test.max); got != test.want {
			t.Errorf("clip(%q, %d) is %q, want %q", test.text, test.max, got, test.want)
		}
	}
}
