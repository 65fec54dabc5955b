package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The report of a month has the readings of that month in the practice's zone and no others, also where the clocks change.
func TestMonthReport(t *testing.T) {
	c := newIngestingClinic(t)
	c.now = time.Date(2026, 4, 2, 14, 0, 0, 0, time.UTC)
	id := c.enroll(object{"time_zone": "America/Los_Angeles"})
	pressure := func(at time.Time, systolic float64, more dbx.Params) {
		values := dbx.Params{"systolic": systolic, "diastolic": 80.0, "device_id": "BP-4471"}
		for name, value := range more {
			values[name] = value
		}
		c.storedReading(id, "blood_pressure", at, values)
	}
	for day := 1; day <= 31; day++ {
		pressure(time.Date(2026, 3, day, 9, 0, 0, 0, newYork), 130, nil)
	}
	for day := 1; day <= 28; day++ {
		pressure(time.Date(2026, 2, day, 9, 0, 0, 0, newYork), 111, nil)
	}
	pressure(time.Date(2026, 3, 31, 23, 59, 59, 0, newYork), 140, nil)
	pressure(time.Date(2026, 4, 1, 0, 0, 0, 0, newYork), 177, nil) // still March in Los Angeles
	pressure(time.Date(2026, 3, 5, 10, 0, 0, 0, newYork), 211, dbx.Params{"review_state": "suspect"})
	pressure(time.Date(2026, 3, 6, 10, 0, 0, 0, newYork), 213, dbx.Params{"status": "entered_in_error"})
	_, text := readPDF(t, c.request(authz.Provider, "GET", "/patients/"+id+"/report/?month=2026-03", nil))
	wantWords(t, text, "Mar 1 to Mar 31, 2026", "Readings on 31 of 31 days", "Left out: 1 suspect, 1 withdrawn", "Times: practice's, EDT", "All days 130/80",
		"Made Apr 2, 2026 10:00 EDT", "mean of 7 days 131/80, of all days 130/80")
	for _, other := range []string{"111", "177", "211", "213", "90 days"} {
		if strings.Contains(text, other) {
			t.Errorf("the report of March has %q:\n%s", other, text)
		}
	}
	_, text = readPDF(t, c.request(authz.Provider, "GET", "/patients/"+id+"/report/?month=2026-02", nil))
	wantWords(t, text, "Feb 1 to Feb 28, 2026", "Readings on 28 of 28 days", "All days 111/80")
	_, text = readPDF(t, c.request(authz.Provider, "GET", "/patients/"+id+"/report/?month=2026-01", nil))
	wantWords(t, text, "No readings in these 31 days.", "Readings on 0 of 31 days")
	_, text = readPDF(t, c.request(authz.Provider, "GET", "/patients/"+id+"/report/?month=2026-04", nil))
	wantWords(t, text, "Apr 1 to Apr 2, 2026", "Readings on 1 of 2 days")
	for _, wrong := range []string{"month=2026-05", "month=2026-13", "month=2026", "month=", "month=2026-03&days=30"} {
		c.request(authz.Provider, "GET", "/patients/"+id+"/report/?"+wrong, nil).want(400).wantAt(object{"code": "validation_error"})
	}
}
