package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The report uses the caller's units, or those of the query: for values, means, limits and text.
func TestVisitReportUnits(t *testing.T) {
	c := newIngestingClinic(t)
	c.now = time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	id := c.enroll(object{"time_zone": "America/New_York"})
	c.storedReading(id, "weight", time.Date(2026, 1, 10, 8, 0, 0, 0, newYork), dbx.Params{"weight_kg": 88.5})
	c.storedReading(id, "weight", time.Date(2026, 1, 14, 8, 0, 0, 0, newYork), dbx.Params{"weight_kg": 90.1})
	c.storedReading(id, "body_temperature", time.Date(2026, 1, 14, 9, 0, 0, 0, newYork), dbx.Params{"temperature_c": 38.0})
	c.request(authz.Provider, "PUT", "/patients/"+id+"/vital-config/", object{"weight": object{"target_kg": 88}, "reason": "heart failure"}).want(200)
	path := "/patients/" + id + "/report/"
	stored := []string{"90.1 kg", "38 °C", "target 88", "Weight +1.6 kg in 7 days, 2.1 kg over target.", "Temperature, °C"}
	own := []string{"198.6 lb", "100.4 °F", "target 194", "Weight +3.5 lb in 7 days, 4.6 lb over target.", "Temperature, °F"}
	sheet := func(query string, words, not []string) {
		t.Helper()
		_, text := readPDF(t, c.request(authz.Nurse, "GET", path+query, nil))
		wantWords(t, text, words...)
		for _, word := range not {
			if strings.Contains(text, word) {
				t.Errorf("%q: the report has %q:\n%s", query, word, text)
			}
		}
	}
	sheet("", stored, []string{"lb", "°F"})
	sheet("?weight_unit=lb&temperature_unit=F", own, []string{" kg", "°C"})
	c.request(authz.Nurse, "PATCH", "/auth/me/", object{"weight_unit": "lb", "temperature_unit": "F"}).want(200)
	sheet("", own, []string{" kg", "°C"})
	sheet("?weight_unit=kg&temperature_unit=C", stored, []string{"lb", "°F"})
	c.request(authz.Nurse, "GET", path+"?weight_unit=stone", nil).wantFields("weight_unit")
	c.request(authz.Nurse, "GET", path+"?temperature_unit=K", nil).wantFields("temperature_unit")
}
