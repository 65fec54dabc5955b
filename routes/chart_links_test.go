package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A link opens a chart once, within ten minutes, for staff only, and names no patient. Source:
// docs/decisions/security.md, "Links to a chart".
func TestChartLinks(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"first_name": "Ada"})
	share := func() string {
		link := c.request(authz.Nurse, "POST", "/patients/"+id+"/links/", nil).want(201).object()
		code := link["code"].(string)
		if strings.Contains(code, id) || strings.Contains(code, id[:8]) {
			t.Errorf("the code names the patient: %s", code)
		}
		return code
	}
	open := func(role authz.Role, code string) reply {
		return c.request(role, "POST", "/chart-links/", object{"code": code})
	}
	code := share()
	open(authz.Patient, code).want(403) // leaves it valid
	if got := open(authz.Provider, code).want(200).object()["patient_id"]; got != id {
		t.Errorf("the link opens %v, not %s", got, id)
	}
	if got := open(authz.Provider, code).want(400).object()["code"]; got != "invalid_state" {
		t.Errorf("a second use answers %v", got)
	}
	late := share()
	if late == code {
		t.Error("two links have the same code")
	}
	c.now = c.now.Add(10 * time.Minute)
	open(authz.Provider, late).want(400)
	for _, wrong := range []any{"", "v2:k:AA:AA", code[:len(code)-2] + "AA", strings.Repeat("x", 1001), 7, nil} {
		c.request(authz.Provider, "POST", "/chart-links/", object{"code": wrong}).want(400)
	}
	gone := share()
	c.request(authz.Admin, "DELETE", "/patients/"+id+"/", nil).want(204)
	open(authz.Provider, gone).want(404)
	c.request(authz.Nurse, "POST", "/patients/"+id+"/links/", nil).want(404)
	if events := strings.Join(c.events(id), " "); strings.Count(events, "patient.share") != 3 {
		t.Errorf("the audit trail has %s", events)
	}
}
