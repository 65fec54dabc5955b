package routes_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A patient's name in a report and in the claims.
func TestExportsContainNoFormulas(t *testing.T) {
	c, patient := clinicWithClaims(t)
	for name, cell := range map[string]string{
		"＝HYPERLINK(1)": "'＝HYPERLINK(1)", "＋1": "'＋1", "－1": "'－1", "＠x": "'＠x", "﹦1": "'﹦1",
	} {
		c.request(authz.Admin, http.MethodPut, "/patients/"+patient+"/", patientBody(object{"first_name": name, "last_name": name})).want(200)
		c.now = c.now.Add(time.Hour) // reports are cached
		for path, want := range map[string]string{
			reportPath + "export/?report=patient-summary&fields=patient_name": "patient_name\r\n" + cell + " " + name + "\r\n",
			"/billing/claims-exports/?format=csv&status=paid":                 "\"" + cell + ", " + name + "\"",
		} {
			if body := c.request(authz.DataMonitor, http.MethodGet, path, nil).want(200).body; !strings.Contains(body, want) {
				t.Errorf("%s with the name %q lacks %q: %s", path, name, want, body)
			}
		}
	}
}
