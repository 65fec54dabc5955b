package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/consumer"
	"github.com/vigilhealth/vigil/internal/events/envelope"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vigiltest/natsserver"
)

var (
	now        = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	discard    = slog.New(slog.DiscardHandler)
	streamName = "VIGIL_EVENTS"
)

func clock() time.Time { return now }

// practice is a database with a running writer, four patients and their cuffs bp-0 to bp-3.
type practice struct {
	app      *tests.TestApp
	pipeline *ingest.Pipeline
}

func newPractice(t *testing.T) *practice {
	t.Helper()
	app := vigiltest.NewApp(t)
	readings := ingest.NewReadingStore(ingest.Rules{
		PracticeZone: time.UTC, NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2}, MaxFuture: 5 * time.Minute, LateAfter: 24 * time.Hour,
	})
	hooks.Bind(app, hooks.Engines{
		ReadingStore: readings, Directory: patients.NewDirectory(), Zone: time.UTC, Clock: clock, EvictUser: func(string) {}, Wake: func() {}, WakeMailer: func() {},
	})
	for n := range 4 {
		patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": fmt.Sprintf("gp-%d", n)})
		vigiltest.Assign(t, app, fmt.Sprintf("bp-%d", n), patient, now.Add(-48*time.Hour))
	}
	writer := ingest.NewWriter(readings, clock, discard, func([]ingest.Outcome) {})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { writer.Run(ctx, app) })
	t.Cleanup(func() { stop(); running.Wait() })
	return &practice{app, ingest.NewPipeline(ingest.PipelineOptions{
		Adapters: gateway.Adapters{gateway.Contract: gateway.ContractAdapter{MaxFuture: 5 * time.Minute}}, Readings: readings, Writer: writer,
		Devices: devices.NewEngine(devices.Rules{PracticeZone: time.UTC}), Log: discard,
	})}
}

// measured returns the practice's readings of a device in order of storage.
func (p *practice) measured(t *testing.T, device string) (systolic []string) {
	t.Helper()
	where := dbx.HashExp{}
	if device != "" {
		where["device_id"] = device
	}
	err := p.app.DB().Select("CAST(systolic AS TEXT)").From("observations").Where(where).OrderBy("created_at", "id").Column(&systolic)
	if err != nil {
		t.Fatal(err)
	}
	return systolic
}

// company is the stream, with the practice's key.
type company struct {
	t        *testing.T
	stream   *events.Stream
	identity *age.X25519Identity
	sent     int
}

func newCompany(t *testing.T) *company {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	servers, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	stream, err := events.Connect(events.Options{URLs: servers.URLs(), Stream: streamName, Replicas: 1, Retention: time.Hour, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Close)
	if err := stream.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &company{t: t, stream: stream, identity: identity}
}

// send publishes a reading of a device, sealed for a recipient.
func (c *company) send(device string, recipient *age.X25519Recipient) {
	c.t.Helper()
	c.sent++
	body := fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":"gp-%s","timestamp":%q,"measurement_type":"blood_pressure",`+
		`"values":{"systolic":%d,"diastolic":80,"pulse":70},"unit":"mmHg"}`,
		device, strings.TrimPrefix(device, "bp-"), now.Add(-4*time.Hour+time.Duration(c.sent)*time.Minute).Format(time.RFC3339), 100+c.sent)
	sealed, err := envelope.Seal(envelope.Envelope{Body: []byte(body), ReceivedAt: now, FromAddress: "192.0.2.1"}, recipient.String())
	if err != nil {
		c.t.Fatal(err)
	}
	err = c.stream.Publish(c.t.Context(), events.Message{
		Subject: events.Subject("elm"), ID: fmt.Sprint(c.sent), Header: map[string]string{events.DeviceHeader: device}, Data: sealed,
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// options are the consumer's, without a lease and without waiting.
func (c *company) options(p *practice) consumer.Options {
	return consumer.Options{
		Stream: c.stream, Practice: "elm", Identities: []age.Identity{c.identity}, Replay: 10 * time.Minute,
		Epoch: func() uint64 { return 0 }, Held: func() error { return nil }, Receive: p.pipeline.Receive, Received: func([]ingest.Result) {},
		Backoff: func(int) time.Duration { return time.Millisecond }, Log: discard,
	}
}

// run runs a consumer until no event is left, or for a limited time.
func (c *company) run(p *practice, o consumer.Options) *consumer.Consumer {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	made := consumer.New(o)
	var running sync.WaitGroup
	running.Go(func() { made.Run(ctx, p.app) })
	defer func() { stop(); running.Wait() }()
	for end := time.Now().Add(60 * time.Second); ; {
		_, err := c.stream.JetStream().Consumer(c.t.Context(), streamName, events.ConsumerName("elm", o.Epoch()))
		oldest := time.Time{}
		if err == nil {
			oldest, err = c.stream.OldestUnconsumed(c.t.Context(), "elm")
		}
		if err == nil && oldest.IsZero() {
			return made
		}
		if time.Now().After(end) {
			c.t.Fatalf("events are left: %v, %v", oldest, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-c.t.Context().Done():
		}
	}
}

// The process is killed between commit and acknowledgement, again and again: each event is stored once, in the order of its device.
func TestExactlyOnceAcrossKillsBetweenCommitAndAcknowledgement(t *testing.T) {
	c, p := newCompany(t), newPractice(t)
	for n := range 40 {
		c.send(fmt.Sprintf("bp-%d", n%4), c.identity.Recipient())
	}
	o := c.options(p)
	var lock sync.Mutex
	commits := 0
	o.Held = func() error {
		lock.Lock()
		defer lock.Unlock()
		if commits++; commits < 60 && commits%7 == 0 {
			return errors.New("killed")
		}
		return nil
	}
	c.run(p, o)
	if commits <= 40 {
		t.Fatalf("no event was delivered twice: %d commits", commits)
	}
	check := func() {
		t.Helper()
		if got := p.measured(t, ""); len(got) != 40 {
			t.Errorf("%d readings of 40 events", len(got))
		}
		for n := range 4 {
			if got := p.measured(t, fmt.Sprintf("bp-%d", n)); !slices.IsSorted(got) || len(got) != 10 {
				t.Errorf("device %d: %v", n, got)
			}
		}
	}
	check()
	position, err := collections.FindEventPosition(p.app, streamName)
	if err != nil || position.Sequence != 40 || position.PublishedAt.IsZero() {
		t.Errorf("the position is %+v, %v", position, err)
	}
	o = c.options(p) // the next holder reads ten minutes again, all duplicates
	o.Epoch = func() uint64 { return 5 }
	var results []ingest.Status
	o.Received = func(r []ingest.Result) {
		lock.Lock()
		defer lock.Unlock()
		results = append(results, r[0].Status)
	}
	c.run(p, o)
	check()
	if len(results) != 40 || slices.Contains(results, ingest.Stored) {
		t.Errorf("the second reading of the stream: %v", results)
	}
}

// A restored database has an earlier position, and reads the rest of the stream again.
func TestRestoredDatabaseReadsTheStreamAgain(t *testing.T) {
	c, before, restored := newCompany(t), newPractice(t), newPractice(t)
	for n := range 12 {
		c.send(fmt.Sprintf("bp-%d", n%4), c.identity.Recipient())
	}
	c.run(before, c.options(before))
	o := c.options(restored)
	o.Epoch = func() uint64 { return 1 }
	c.run(restored, o)
	if got := restored.measured(t, ""); len(got) != 12 {
		t.Errorf("%d readings of 12 after the restore", len(got))
	}
	if _, err := c.stream.Consumer(t.Context(), "elm", 0, time.Time{}); !errors.Is(err, events.ErrNewerEpoch) {
		t.Errorf("a former holder gets a consumer: %v", err)
	}
}

// A poisoned event stops its own device for ten tries and becomes a dead event; others continue, also if it makes ingest panic.
func TestPoisonedEvent(t *testing.T) {
	for name, poison := range map[string]func() error{
		"an error": func() error { return errors.New("poisoned") },
		"a panic":  func() error { panic("poisoned") },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := newCompany(t), newPractice(t)
			for n := range 8 {
				c.send(fmt.Sprintf("bp-%d", n%4), c.identity.Recipient())
			}
			o := c.options(p)
			var lock sync.Mutex
			tries := 0
			o.Receive = func(ctx context.Context, app core.App, r ingest.VendorRequest) ([]ingest.Result, error) {
				if strings.Contains(string(r.Body), `"systolic":102,`) { // the first event of bp-1
					lock.Lock()
					defer lock.Unlock()
					tries++
					return nil, poison()
				}
				return p.pipeline.Receive(ctx, app, r)
			}
			c.run(p, o)
			if tries != consumer.MaxTries {
				t.Errorf("%d tries, want %d", tries, consumer.MaxTries)
			}
			if got := p.measured(t, "bp-1"); !slices.Equal(got, []string{"106.0"}) && !slices.Equal(got, []string{"106"}) {
				t.Errorf("the device has %v", got)
			}
			if got := p.measured(t, ""); len(got) != 7 {
				t.Errorf("%d readings", len(got))
			}
			dead := c.dead()
			if len(dead) != 1 || dead[0].Header.Get(events.PracticeHeader) != "elm" || dead[0].Header.Get(events.ReasonHeader) != events.ReasonFailed {
				t.Errorf("dead events: %+v", dead)
			}
		})
	}
}

func (c *company) dead() (list []*jetstream.RawStreamMsg) {
	c.t.Helper()
	stream, err := c.stream.JetStream().Stream(c.t.Context(), streamName)
	if err != nil {
		c.t.Fatal(err)
	}
	for next := uint64(1); ; {
		message, err := stream.GetMsg(c.t.Context(), next, jetstream.WithGetMsgSubject(events.Dead))
		if err != nil {
			return list
		}
		list, next = append(list, message), message.Sequence+1
	}
}

// An event that was sealed for a retired key is a dead event at once, still sealed; the next event of the device is stored.
func TestRetiredKey(t *testing.T) {
	c, p := newCompany(t), newPractice(t)
	retired, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	c.send("bp-0", retired.Recipient())
	c.send("bp-0", c.identity.Recipient())
	c.run(p, c.options(p))
	dead := c.dead()
	if len(dead) != 1 || dead[0].Header.Get(events.ReasonHeader) != events.ReasonNoIdentity {
		t.Fatalf("dead events: %+v", dead)
	}
	if _, err := envelope.Open(dead[0].Data, retired); err != nil {
		t.Errorf("the dead event is damaged: %v", err)
	}
	if got := p.measured(t, ""); len(got) != 1 {
		t.Errorf("%d readings", len(got))
	}
}

// While the database accepts no writes no try counts: an outage makes no dead events.
func TestOutageOfTheDatabaseMakesNoDeadEvents(t *testing.T) {
	c, p := newCompany(t), newPractice(t)
	c.send("bp-0", c.identity.Recipient())
	if _, err := p.app.DB().NewQuery(`CREATE TRIGGER outage BEFORE INSERT ON event_positions BEGIN SELECT RAISE(ABORT, 'no writes'); END`).Execute(); err != nil {
		t.Fatal(err)
	}
	o := c.options(p)
	var lock sync.Mutex
	tries := 0
	o.Receive = func(ctx context.Context, app core.App, r ingest.VendorRequest) ([]ingest.Result, error) {
		lock.Lock()
		defer lock.Unlock()
		if tries++; tries == 3*consumer.MaxTries {
			if _, err := app.DB().NewQuery(`DROP TRIGGER outage`).Execute(); err != nil {
				t.Error(err)
			}
		}
		return p.pipeline.Receive(ctx, app, r)
	}
	c.run(p, o)
	if got := p.measured(t, ""); len(got) != 1 || len(c.dead()) != 0 {
		t.Errorf("%d readings after %d tries, dead events %v", len(got), tries, c.dead())
	}
}
