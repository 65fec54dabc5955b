package routes_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The evidence of an entry includes readings, alerts, orders and consents. A client that reads billing does not receive
// the parts that its scopes do not cover.
func TestEvidenceForClients(t *testing.T) {
	c := newClinic(t)
	patient := c.billablePatient()
	c.logCall(patient, "2026-01-10T14:00:00Z", 40)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "time"}).want(200)
	path := "/billing/entries/" + c.entryOf(patient, "99457") + "/"
	all := []string{"billing.read", "patients.read", "observations.read", "alerts.read"}
	m := c.addClient(object{"scopes": all})
	full := c.token(m, "")
	c.requestAsClient(full, "GET", path+"evidence/", nil).want(200)
	for i, left := range all[1:] {
		scopes := append([]string{}, all[:i+1]...)
		token := c.token(m, strings.Join(append(scopes, all[i+2:]...), " "))
		c.requestAsClient(token, "GET", path, nil).want(200)
		for _, format := range []string{"", "?format=pdf"} {
			c.requestAsClient(token, "GET", path+"evidence/"+format, nil).want(403, "insufficient_scope")
		}
		answer := c.requestWithToken("GET", "/api/v1"+path+"evidence/", token)
		if challenge := answer.Header().Get("WWW-Authenticate"); !strings.Contains(challenge, `scope="`+left+`"`) {
			t.Errorf("without %s: %q", left, challenge)
		}
	}
}
