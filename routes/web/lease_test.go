package web_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// heldLease is a lease that a test gives and takes.
type heldLease struct {
	held bool
	ago  time.Duration
}

func (l *heldLease) MayWrite() bool          { return l.held }
func (l *heldLease) LastHeld() time.Duration { return l.ago }

func TestLease(t *testing.T) {
	l, path := &heldLease{}, filepath.Join(t.TempDir(), "stale-reads.jsonl")
	loses := func(answer func(c *web.Call) error) func(*web.Call) error { // the process is paused between commit and answer
		return func(c *web.Call) error {
			l.held = false
			return answer(c)
		}
	}
	read := func(c *web.Call) error {
		if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, "p-1", "p-1"); err != nil {
			return err
		}
		return c.OK("ok")
	}
	s := serve(t, setup{lease: l, stale: audit.NewStaleReads(path), rows: []web.Route{
		get("/probes/", authz.ReadPatients, read),
		post("/probes/", authz.ReadPatients, ok),
		post("/paused/", authz.ReadPatients, loses(ok)),
		post("/paused-created/", authz.ReadPatients, loses(func(c *web.Call) error { return c.Created("ok") })),
		post("/paused-empty/", authz.ReadPatients, loses(func(c *web.Call) error { return c.NoContent(nil) })),
		{Method: "POST", Path: "/probes/_search/", Permission: authz.ReadPatients, Limit: ratelimit.User, ReadOnly: true, Handle: ok},
	}})
	for name, test := range map[string]struct {
		held         bool
		ago          time.Duration
		method, path string
		status       int
		stale        string
	}{
		"read":                     {true, 0, "GET", "/api/v1/probes/", 200, ""},
		"write":                    {true, 0, "POST", "/api/v1/probes/", 200, ""},
		"paused before the answer": {true, 0, "POST", "/api/v1/paused/", 503, ""},
		"paused, created":          {true, 0, "POST", "/api/v1/paused-created/", 503, ""},
		"paused, no content":       {true, 0, "POST", "/api/v1/paused-empty/", 503, ""},
		"read after loss":          {false, 10 * time.Minute, "GET", "/api/v1/probes/", 200, "true"},
		"search after loss":        {false, time.Minute, "POST", "/api/v1/probes/_search/", 200, "true"},
		"write after loss":         {false, time.Second, "POST", "/api/v1/probes/", 503, ""},
		"read too late":            {false, 10*time.Minute + 1, "GET", "/api/v1/probes/", 503, ""},
		"health":                   {false, time.Hour, "GET", "/health/live", 200, ""},
		"native write":             {false, time.Second, "POST", "/api/collections/users/records", 503, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"", "key-" + strings.ReplaceAll(name, " ", "-")} {
				l.held, l.ago = test.held, test.ago
				sent := request{method: test.method, target: test.path, token: "nurse"}
				if key != "" {
					sent.header = map[string]string{"Idempotency-Key": key}
				}
				rec := s.do(sent)
				if rec.Code != test.status || rec.Header().Get(web.StaleHeader) != test.stale {
					t.Errorf("key %q: %d, stale %q, want %d, %q: %s", key, rec.Code, rec.Header().Get(web.StaleHeader), test.status, test.stale, rec.Body)
				}
				if test.status == 503 {
					expect(t, rec, 503, "not_leader")
				}
			}
		})
	}
	lines, err := os.ReadFile(path)
	if err != nil || strings.Count(string(lines), `"patient_id":"p-1"`) != 2 || strings.Contains(string(lines), "@") {
		t.Errorf("recorded reads %s: %v", lines, err)
	}
}
