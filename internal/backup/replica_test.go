package backup_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/backup"
)

// The age counts from the last upload that Litestream reported, also after it ended, and from the start without a report. Without a replica there is none.
func TestAgeOfReplica(t *testing.T) {
	dir, err := os.MkdirTemp("", "replica") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	start := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	replica := backup.NewReplica(dir, start)
	want := func(now time.Time, age time.Duration, configured, reported bool) {
		t.Helper()
		got, there, err := replica.Age(t.Context(), now)
		if got != age || there != configured || (err == nil) != reported {
			t.Errorf("%s, configured: %v (%v); want %s, %v, reported: %v", got, there, err, age, configured, reported)
		}
	}
	want(start.Add(time.Hour), 0, false, true)
	if err := os.Mkdir(filepath.Join(dir, ".data.db-litestream"), 0o700); err != nil {
		t.Fatal(err)
	}
	want(start.Add(time.Hour), time.Hour, true, false)

	answer := `{"databases":[{"path":"/data/data.db","status":"replicating"}]}`
	listener, err := net.Listen("unix", filepath.Join(dir, ".litestream.sock"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /list", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	want(start.Add(2*time.Hour), 2*time.Hour, true, true)
	answer = `{"databases":[{"path":"/data/data.db","status":"replicating","last_sync_at":"2026-01-15T14:59:58Z"}]}`
	want(start.Add(3*time.Hour), 2*time.Second, true, true)
	for _, answer = range []string{`{"databases":[]}`, `{"error":"x"}`, "<html>"} {
		want(start.Add(4*time.Hour), time.Hour+2*time.Second, true, false)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	want(start.Add(5*time.Hour), 2*time.Hour+2*time.Second, true, false)
}
