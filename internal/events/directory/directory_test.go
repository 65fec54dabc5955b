package directory_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/vigiltest/natsserver"
)

var key = []byte("directory key of the company")

func connect(t *testing.T, url string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func start(t *testing.T, users ...*server.User) *natsserver.Servers {
	t.Helper()
	servers, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Size: 1, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	return servers
}

// await waits for changes of the directory until the condition holds.
func await(t *testing.T, d *directory.Directory, condition func() bool) {
	t.Helper()
	end := time.After(30 * time.Second)
	for {
		changed := d.Changed()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-end:
			t.Fatal("the directory never has the wanted state")
		}
	}
}

func TestDirectoryFollowsThePractices(t *testing.T) {
	js := connect(t, start(t).URLs())
	d := directory.New(js, slog.New(slog.DiscardHandler))
	go d.Run(t.Context())
	if d.Loaded() {
		t.Fatal("the directory is loaded before there is a bucket")
	}
	if err := directory.Create(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	await(t, d, d.Loaded)
	cuff := directory.NewID(key, directory.Device, "bp-1")
	elm, oak := directory.NewPublisher(js, "elm"), directory.NewPublisher(js, "oak")
	publish := func(p *directory.Publisher, intervals []directory.Interval) {
		t.Helper()
		claims := map[directory.ID][]directory.Interval{}
		if intervals != nil {
			claims[cuff] = intervals
		}
		if err := p.Publish(t.Context(), "age1test", claims); err != nil {
			t.Fatal(err)
		}
	}
	owns := func(practice string, at time.Time) func() bool {
		return func() bool { return d.Owner(at, cuff) == directory.Owner{Practice: practice} }
	}
	publish(elm, []directory.Interval{span(1, 0)})
	await(t, d, owns("elm", day(20)))
	await(t, d, func() bool { return d.Recipient("elm") == "age1test" })

	publish(elm, []directory.Interval{span(1, 10)}) // the device moves
	publish(oak, []directory.Interval{span(10, 0)})
	await(t, d, owns("oak", day(20)))
	if owner := d.Owner(day(9), cuff); owner.Practice != "elm" {
		t.Errorf("the backlog belongs to %+v", owner)
	}

	oak.Reset() // as in the hourly publication: the bucket is read again, and nothing of another practice is touched
	publish(oak, nil)
	await(t, d, owns("elm", day(20)))
}

func TestPracticeWritesItsOwnKeysOnly(t *testing.T) {
	permissions := &server.Permissions{Publish: &server.SubjectPermission{
		Allow: []string{"$JS.API.>", "$KV." + directory.Bucket + ".elm.>"},
	}}
	servers := start(t, &server.User{Username: "fleet", Password: "f"}, &server.User{Username: "elm", Password: "e", Permissions: permissions})
	if err := directory.Create(t.Context(), connect(t, servers.URLs(), nats.UserInfo("fleet", "f")), 1); err != nil {
		t.Fatal(err)
	}
	js := connect(t, servers.URLs(), nats.UserInfo("elm", "e"))
	if err := directory.NewPublisher(js, "elm").Publish(t.Context(), "age1elm", nil); err != nil {
		t.Fatalf("a practice cannot publish its own claims: %v", err)
	}
	if err := directory.NewPublisher(js, "oak").Publish(t.Context(), "age1elm", nil); err == nil {
		t.Fatal("a practice published another's recipient")
	}
}
