package events_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/vigiltest/natsserver"
)

func startServers(t *testing.T, o natsserver.Options) *natsserver.Servers {
	t.Helper()
	o.Dir = t.TempDir()
	servers, err := natsserver.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	return servers
}

func options(urls string) events.Options {
	return events.Options{URLs: urls, Name: "test", Stream: "VIGIL_EVENTS", Replicas: 1, Retention: 72 * time.Hour, Log: slog.New(slog.DiscardHandler)}
}

func connect(t *testing.T, o events.Options) *events.Stream {
	t.Helper()
	stream, err := events.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Close)
	return stream
}

func created(t *testing.T, o events.Options) *events.Stream {
	t.Helper()
	stream := connect(t, o)
	if err := stream.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return stream
}

func count(t *testing.T, stream *events.Stream) uint64 {
	t.Helper()
	info, err := stream.JetStream().Stream(t.Context(), "VIGIL_EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	return info.CachedInfo().State.Msgs
}

func TestPublishStoresARepeatOnce(t *testing.T) {
	stream := created(t, options(startServers(t, natsserver.Options{Size: 1}).URLs()))
	for _, id := range []string{"a", "a", "b", "a"} {
		if err := stream.Publish(t.Context(), events.Message{Subject: events.Subject("elm"), ID: id, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(t, stream); got != 2 {
		t.Errorf("%d messages stored, want 2", got)
	}
}

func TestFullStreamRejectsAndKeeps(t *testing.T) {
	o := options(startServers(t, natsserver.Options{Size: 1}).URLs())
	o.MaxBytes = 4000
	stream := created(t, o)
	var err error
	stored := uint64(0)
	for n := 0; n < 100 && err == nil; n++ {
		err = stream.Publish(t.Context(), events.Message{Subject: events.Subject("elm"), ID: strings.Repeat("i", n+1), Data: make([]byte, 500)})
		if err == nil {
			stored++
		}
	}
	if !errors.Is(err, events.ErrFull) {
		t.Fatalf("a full stream answers %v, want ErrFull", err)
	}
	if got := count(t, stream); got != stored || stored == 0 {
		t.Errorf("%d messages are kept of %d acknowledged", got, stored)
	}
}

func TestPublishWithoutAQuorum(t *testing.T) {
	servers := startServers(t, natsserver.Options{Size: 3})
	o := options(servers.URLs())
	o.Replicas = 3
	stream := created(t, o)
	publish := func(id string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return stream.Publish(ctx, events.Message{Subject: events.Subject("elm"), ID: id, Data: []byte("x")})
	}
	if err := publish("before"); err != nil {
		t.Fatal(err)
	}
	servers.StopOne(1)
	servers.StopOne(2)
	if err := publish("during"); !errors.Is(err, events.ErrUnavailable) {
		t.Fatalf("one server of three acknowledges: %v", err)
	}
	for n := 1; n <= 2; n++ {
		if err := servers.Run(n); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for range 60 {
		if err = publish("during"); err == nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("a healed cluster does not acknowledge: %v", err)
	}
}

func TestWrongCredentialsAreUnavailable(t *testing.T) {
	servers := startServers(t, natsserver.Options{Size: 1, Users: []*server.User{{Username: "ingress", Password: "right"}}})
	stream := connect(t, options(strings.Replace(servers.URLs(), "nats://", "nats://ingress:wrong@", 1)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := stream.Publish(ctx, events.Message{Subject: events.Subject("elm"), ID: "a"}); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if stream.Connected() {
		t.Error("the stream is connected with wrong credentials")
	}
}

func TestOldestUnconsumed(t *testing.T) {
	stream := created(t, options(startServers(t, natsserver.Options{Size: 1}).URLs()))
	oldest := func() time.Time {
		t.Helper()
		at, err := stream.OldestUnconsumed(t.Context(), "elm")
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if at := oldest(); !at.IsZero() {
		t.Errorf("an empty stream has an unconsumed event of %v", at)
	}
	for _, m := range []events.Message{{Subject: events.Subject("oak"), ID: "1"}, {Subject: events.Subject("elm"), ID: "2"}, {Subject: events.Subject("elm"), ID: "3"}} {
		if err := stream.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	first := oldest()
	if first.IsZero() {
		t.Fatal("no unconsumed event without a consumer")
	}
	for epoch, acknowledged := range []int{0, 1, 2} { // the newest epoch counts
		consumer, err := stream.JetStream().CreateConsumer(t.Context(), "VIGIL_EVENTS", jetstream.ConsumerConfig{
			Durable: events.ConsumerName("elm", uint64(epoch)), FilterSubject: events.Subject("elm"), AckPolicy: jetstream.AckExplicitPolicy,
		})
		if err != nil {
			t.Fatal(err)
		}
		for range acknowledged {
			message, err := consumer.Next()
			if err == nil {
				err = message.DoubleAck(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		at := oldest()
		if isAll := acknowledged == 2; at.IsZero() != isAll || acknowledged == 1 && !at.After(first) || acknowledged == 0 && !at.Equal(first) {
			t.Errorf("%d acknowledged: the oldest is of %v, the first was of %v", acknowledged, at, first)
		}
	}
}
