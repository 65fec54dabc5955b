package lease_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/lease"
	"github.com/vigilhealth/vigil/internal/vigiltest/natsserver"
)

// cluster starts three servers and connects to them.
func cluster(t *testing.T) (*natsserver.Servers, jetstream.JetStream) {
	t.Helper()
	servers, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	stream, err := events.Connect(events.Options{URLs: servers.URLs(), Name: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Close)
	return servers, stream.JetStream()
}

func TestNATSStore(t *testing.T) {
	_, js := cluster(t)
	ctx := t.Context()
	store, other := lease.NewNATSStore(js, "elm-street", 3), lease.NewNATSStore(js, "oak-hill", 3)

	expect := func(want lease.Entry) {
		t.Helper()
		for {
			got, err := store.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got == want {
				return
			}
			if got.Revision >= want.Revision {
				t.Fatalf("read %+v, want %+v", got, want)
			} // a replica that is behind
		}
	}
	expect(lease.Entry{})
	record := lease.Record{Node: "a", Nonce: "n"}
	first, err := store.Write(ctx, record, 0)
	if err != nil {
		t.Fatal(err)
	}
	expect(lease.Entry{Record: record, Revision: first})
	for name, revision := range map[string]uint64{"as the first": 0, "a later revision": first + 1} {
		if _, err := store.Write(ctx, record, revision); !errors.Is(err, lease.ErrRevision) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := other.Write(ctx, record, 0); err != nil { // another practice's lease
		t.Fatal(err)
	}
	record.Wrote = first
	second, err := store.Write(ctx, record, first)
	if err != nil {
		t.Fatal(err)
	}
	expect(lease.Entry{Record: record, Revision: second})

	bucket, err := js.KeyValue(ctx, lease.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	garbage, err := bucket.PutString(ctx, lease.Key("elm-street"), `{"node": 5`)
	if err != nil {
		t.Fatal(err)
	}
	expect(lease.Entry{Revision: garbage})
	if err := bucket.Delete(ctx, lease.Key("elm-street")); err != nil {
		t.Fatal(err)
	}
	expect(lease.Entry{Revision: garbage + 1}) // a deletion has a revision
	if third, err := store.Write(ctx, record, garbage+1); err != nil || third <= garbage+1 {
		t.Errorf("written as %d: %v", third, err)
	}
}
