package dispatcher_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/events/dispatcher"
	"github.com/vigilhealth/vigil/internal/events/envelope"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vigiltest/natsserver"
)

var (
	now = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	key = []byte("the company's directory key")
	log = slog.New(slog.DiscardHandler)
)

type company struct {
	t          *testing.T
	stream     *events.Stream
	dispatcher *dispatcher.Dispatcher
	identities map[string]*age.X25519Identity // "" is the company's
	elm, oak   *directory.Publisher
}

func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{t: t, identities: map[string]*age.X25519Identity{}}
	for _, name := range []string{"", "elm", "oak"} {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		c.identities[name] = identity
	}
	servers, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	if c.stream, err = events.Connect(events.Options{URLs: servers.URLs(), Stream: "VIGIL_EVENTS", Replicas: 1, Retention: time.Hour, Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stream.Close)
	if err := errors.Join(c.stream.Create(t.Context()), directory.Create(t.Context(), c.stream.JetStream(), 1)); err != nil {
		t.Fatal(err)
	}
	devices := directory.New(c.stream.JetStream(), log)
	go devices.Run(t.Context())
	c.dispatcher = dispatcher.New(dispatcher.Options{
		Stream: c.stream, Directory: devices, Adapters: gateway.Adapters{gateway.Contract: gateway.ContractAdapter{MaxFuture: 5 * time.Minute}}, DirectoryKey: key,
		Identities: []age.Identity{c.identities[""]}, Clock: func() time.Time { return now }, Log: log, Interval: 50 * time.Millisecond,
	})
	go c.dispatcher.Run(t.Context())
	c.elm, c.oak = directory.NewPublisher(c.stream.JetStream(), "elm"), directory.NewPublisher(c.stream.JetStream(), "oak")
	c.claim("elm")
	c.claim("oak")
	return c
}

// claim publishes all devices that a practice has had since a day ago.
func (c *company) claim(practice string, devices ...string) {
	c.t.Helper()
	claims := map[directory.ID][]directory.Interval{}
	for _, device := range devices {
		claims[directory.NewID(key, directory.Device, device)] = []directory.Interval{{From: now.Add(-24 * time.Hour)}}
	}
	publisher := c.elm
	if practice == "oak" {
		publisher = c.oak
	}
	if err := publisher.Publish(c.t.Context(), c.identities[practice].Recipient().String(), claims); err != nil {
		c.t.Fatal(err)
	}
}

// hold publishes an unassigned event.
func (c *company) hold(device string, systolic int, recipient *age.X25519Recipient) {
	c.t.Helper()
	body := fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":"gp-1","timestamp":%q,"measurement_type":"blood_pressure",`+
		`"values":{"systolic":%d,"diastolic":80,"pulse":70},"unit":"mmHg"}`, device, now.Add(-time.Hour).Format(time.RFC3339), systolic)
	sealed, err := envelope.Seal(envelope.Envelope{Body: []byte(body), ReceivedAt: now}, recipient.String())
	if err == nil {
		err = c.stream.Publish(c.t.Context(), events.Message{
			Subject: events.Unassigned, ID: body, Header: map[string]string{events.ReasonHeader: events.ReasonUnknown, events.DeviceHeader: device}, Data: sealed,
		})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// await waits until the dispatcher's state fulfills a condition.
func (c *company) await(what string, condition func(dispatcher.State) bool) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(c.dispatcher.State()); {
		if time.Now().After(end) {
			c.t.Fatalf("%s: the state stays %+v", what, c.dispatcher.State())
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-c.t.Context().Done():
		}
	}
}

func (c *company) of(practice string) (devices []string) {
	c.t.Helper()
	list, err := c.stream.All(c.t.Context(), events.Subject(practice))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, stored := range list {
		if _, err := envelope.Open(stored.Data, c.identities[practice]); err != nil {
			c.t.Errorf("%s cannot open its event: %v", practice, err)
		}
		devices = append(devices, stored.Header[events.DeviceHeader])
	}
	return devices
}

func count(critical int, reasons ...string) func(dispatcher.State) bool {
	return func(s dispatcher.State) bool {
		found := 0
		for n, event := range s.Unassigned {
			if event.Critical {
				found++
			}
			if n >= len(reasons) || event.Reason != reasons[n] {
				return false
			}
		}
		return !s.At.IsZero() && found == critical && len(s.Unassigned) == len(reasons)
	}
}

// A dangerous value is critical at once; the event is delivered when a practice registers the device, and is not critical any more.
func TestDeliveredWhenRegistered(t *testing.T) {
	c := newCompany(t)
	c.hold("bp-1", 121, c.identities[""].Recipient())
	c.hold("bp-2", 235, c.identities[""].Recipient())
	c.await("held", count(1, events.ReasonUnknown, events.ReasonUnknown))
	c.claim("oak", "bp-2")
	c.await("delivered", count(0, events.ReasonUnknown))
	if got := c.of("oak"); len(got) != 1 || got[0] != "bp-2" {
		t.Errorf("oak has %v", got)
	}
	if at := c.dispatcher.State().Unconsumed["oak"]; at.IsZero() {
		t.Error("the event that oak has not stored is not counted")
	}
	c.claim("elm", "bp-1")
	c.await("delivered", count(0))
	if got := c.of("elm"); len(got) != 1 {
		t.Errorf("elm has %v", got)
	}
}

func TestOverlapWaitsForAPerson(t *testing.T) {
	c := newCompany(t)
	c.claim("elm", "bp-1")
	c.claim("oak", "bp-1")
	c.hold("bp-1", 121, c.identities[""].Recipient())
	c.await("overlap", count(0, events.ReasonOverlap))
	sequence := c.dispatcher.State().Unassigned[0].Sequence
	if err := c.dispatcher.Assign(t.Context(), sequence, "ash"); err == nil {
		t.Error("an event is assigned to a practice that does not exist")
	}
	if content, err := c.dispatcher.Content(t.Context(), sequence); err != nil || len(content.Body) == 0 {
		t.Errorf("the event cannot be shown: %v", err)
	}
	if err := c.dispatcher.Assign(t.Context(), sequence, "elm"); err != nil {
		t.Fatal(err)
	}
	if err := c.dispatcher.Assign(t.Context(), sequence, "oak"); !errors.Is(err, events.ErrGone) {
		t.Errorf("assigned twice: %v", err)
	}
	c.await("assigned", count(0))
	if elm, oak := c.of("elm"), c.of("oak"); len(elm) != 1 || len(oak) != 0 {
		t.Errorf("elm has %v, oak has %v", elm, oak)
	}
}

// An event for a retired key is critical, because its values are unknown, and stays.
func TestUnassignedForARetiredKey(t *testing.T) {
	c := newCompany(t)
	c.claim("elm", "bp-1")
	c.hold("bp-1", 121, c.identities["oak"].Recipient())
	c.await("retired", count(1, events.ReasonNoIdentity))
}

func TestDeadEventsAreCountedAndSentAgain(t *testing.T) {
	c := newCompany(t)
	err := c.stream.Publish(t.Context(), events.Message{
		Subject: events.Dead, ID: "dead", Header: map[string]string{events.PracticeHeader: "elm", events.DeviceHeader: "bp-1"}, Data: []byte("sealed"),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.await("dead", func(s dispatcher.State) bool { return s.Dead["elm"] == 1 })
	list, err := c.stream.All(t.Context(), events.Dead)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := dispatcher.Retry(t.Context(), c.stream, list[0]); err != nil {
		t.Fatal(err)
	}
	c.await("sent again", func(s dispatcher.State) bool { return s.Dead["elm"] == 0 && !s.Unconsumed["elm"].IsZero() })
}
