package routes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// unsigned posts a body without a valid signature.
func (c *clinic) unsigned(address, body string, header ...string) int {
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/api/v1/gateway/webhook/", strings.NewReader(body))
	r.RemoteAddr = address
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, r.Method, r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	return rec.Code
}

// Refused deliveries add one audit entry an hour per address and reason, with their number.
func TestRefusedWebhooksAreAggregated(t *testing.T) {
	counted := 0
	c := newIngestingClinic(t, func(e *routes.Engines) { e.Observer.Rejected = func(string) { counted++ } })
	stale := []string{gateway.SignatureHeader, gateway.Sign(webhookSecret, []byte("{}")), gateway.TimestampHeader, "1"}
	before := vigiltest.RowCounts(t, c.app)
	const times = 200
	for i := range times {
		for _, status := range []int{
			c.unsigned("198.51.100.7:1", fmt.Sprint(i)),
			c.unsigned(fmt.Sprintf("[2001:db8::%x]:1", i), "x", gateway.SignatureHeader, fmt.Sprint(i)), // one /64 is one sender
			c.unsigned("198.51.100.7:1", "{}", stale...),
		} {
			if status != 401 {
				t.Fatalf("answered %d", status)
			}
		}
		c.now = c.now.Add(time.Second)
	}
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 1 || added["audit_log"] != 3 {
		t.Errorf("%d refusals left %v", 3*times, added)
	}
	if counted != 3*times {
		t.Errorf("%d of them were counted", counted)
	}
	c.now = c.now.Add(time.Hour)
	c.unsigned("198.51.100.7:1", "x")
	page, total, err := audit.List(c.app, audit.Filter{Event: string(audit.WebhookRejected)}, 0, 10)
	if err != nil || total != 6 {
		t.Fatalf("%d entries (%v)", total, err)
	}
	for _, entry := range page[:3] {
		if since := entry.Changes["refused_since"].New; since != float64(times-1) {
			t.Errorf("%s of %s: %v since then", entry.Reason, entry.SourceIP, since)
		}
	}
	if last := page[5]; last.Changes != nil || !strings.HasPrefix(last.ResourceID, "sha256:") || last.Reason != "invalid_signature" {
		t.Errorf("the first entry is %+v", last)
	}
}

// The due entries of many senders are written in one transaction, because readings wait for it.
func TestRefusedSendersAreOneTransaction(t *testing.T) {
	c := newIngestingClinic(t)
	const senders = 150
	for i := range 2 * senders {
		c.unsigned(fmt.Sprintf("198.51.100.%d:1", i%senders), "x")
	}
	for _, sql := range []string{
		`CREATE TABLE moves (n INTEGER)`,
		`CREATE TRIGGER count_moves AFTER UPDATE ON audit_state BEGIN INSERT INTO moves VALUES (1); END`,
	} {
		if _, err := c.app.DB().NewQuery(sql).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	before := vigiltest.RowCounts(t, c.app)
	c.now = c.now.Add(time.Hour)
	c.unsigned("203.0.113.1:1", "x")
	if added := vigiltest.RowsAdded(t, c.app, before); added["audit_log"] != senders+1 || added["moves"] != 1 {
		t.Errorf("one request of a stranger left %v", added)
	}
}

func TestForeignSourceIsRecordedOnce(t *testing.T) {
	c := newIngestingClinic(t, func(e *routes.Engines) { e.GatewaySources = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")} })
	before := vigiltest.RowCounts(t, c.app)
	for range 50 {
		if status := c.unsigned("198.51.100.7:1", "{}"); status != 403 {
			t.Fatalf("answered %d", status)
		}
	}
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 1 || added["audit_log"] != 1 {
		t.Errorf("50 deliveries from elsewhere left %v", added)
	}
}
