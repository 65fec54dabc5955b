package routes_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const vendorSecret = "a secret of the vendor's"

// sendVendor posts a body as a vendor that sends its secret in a header.
func (c *clinic) sendVendor(t testing.TB, vendor, body string) reply {
	t.Helper()
	return c.sendVendorWith(t, vendor, body, "X-Api-Key", vendorSecret)
}

func (c *clinic) sendVendorWith(t testing.TB, vendor, body, header, secret string) reply {
	t.Helper()
	path := "/api/v1/gateway/" + vendor + "/"
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if header != "" {
		r.Header.Set(header, secret)
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(t, http.MethodPost, path, rec.Code, rec.Header(), rec.Body.Bytes())
	return reply{t, vendor, rec.Code, rec.Body.String()}
}

// eventStatuses returns the event statuses of a delivery answered with 200.
func (r reply) eventStatuses() (statuses []string) {
	r.t.Helper()
	for _, item := range r.delivered() {
		status := item["status"].(string)
		if reason, hasReason := item["reason"].(string); hasReason {
			status += " " + reason
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func (r reply) delivered() (items []object) {
	r.t.Helper()
	list, _ := r.want(200).object()["results"].([]any)
	for _, item := range list {
		items = append(items, item.(object))
	}
	return items
}

func (r reply) wantStatuses(want ...string) reply {
	r.t.Helper()
	if got := r.eventStatuses(); !slices.Equal(got, want) {
		r.t.Errorf("%s has %q, want %q", r.what, got, want)
	}
	return r
}

// queryRows returns the rows of a query as text.
func (c *clinic) queryRows(t testing.TB, query string) (rows []string) {
	t.Helper()
	if err := c.app.DB().NewQuery(query).Column(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

const storedReadings = `SELECT observation_type || ' ' || COALESCE(systolic, '') || '/' || COALESCE(diastolic, '') || ' ' || COALESCE(CAST(pulse AS INTEGER), '-') || ' ' || irregular_heartbeat
	FROM observations ORDER BY measured_at, systolic`

func (c *clinic) wantReadings(t testing.TB, want ...string) {
	t.Helper()
	if got := c.queryRows(t, storedReadings); !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
}
