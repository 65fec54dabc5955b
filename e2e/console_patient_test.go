package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patientPage is a practice with a patient in Honolulu whose blood pressure rose.
type patientPage struct {
	*practice
	patient string
	nurse   string
	zone    *time.Location
	at      time.Time
}

const glancedName = "Quillmarked"

// newPatientPage stores device readings on fourteen days with a gap of four; mornings are lower than evenings, and the last three
// are critical.
func newPatientPage(t *testing.T) *patientPage {
	t.Helper()
	g := &patientPage{practice: newPractice(t, append(noRateLimits, "VIGIL_PRACTICE_NAME=Hudson Valley Heart Clinic")...).serve(t, ""), at: time.Now()}
	var err error
	if g.zone, err = time.LoadLocation("Pacific/Honolulu"); err != nil {
		t.Fatal(err)
	}
	g.nurse = g.user(t, "nurse", object{"first_name": "Noah", "last_name": "Okafor"})
	for _, role := range []string{"provider", "data_monitor", "ma"} {
		g.user(t, role, object{"first_name": "Robin", "last_name": "Patel"})
	}
	g.patient = g.practice.patient(t, object{
		"first_name": "Kwame", "last_name": glancedName, "phone": "(518) 555-0120", "time_zone": g.zone.String(), "icd10_codes": []string{"I50.9", "I10"},
		"gateway_patient_id": "GW-7",
	})
	first := g.at.AddDate(0, 0, -30).In(g.zone).Format(time.DateOnly)
	g.post(t, "/api/v1/patients/"+g.patient+"/consents/", g.nurse, object{"type": "rpm", "method": "written", "granted_at": first}).expect(t, 201)
	g.giveDevice(t, "BP-4471", g.patient)
	year, month, day := g.at.In(g.zone).Date()
	for ago := 17; ago >= 1; ago-- {
		if ago >= 6 && ago <= 9 { // a gap
			continue
		}
		g.measured(t, 128, 80, time.Date(year, month, day-ago, 7, 5, 0, 0, g.zone))
		g.measured(t, 146, 92, time.Date(year, month, day-ago, 19, 40, 0, 0, g.zone))
	}
	for i := range 3 {
		g.measured(t, 186+float64(i), 114, g.at.Add(time.Duration(i-5)*time.Minute))
	}
	return g
}

func (p *patientPage) measured(t *testing.T, systolic, diastolic float64, at time.Time) {
	t.Helper()
	p.signed(t, measurement("GW-7", "BP-4471", systolic, diastolic, at)).expect(t, 200)
}

func (p *patientPage) about(t *testing.T, path string) object {
	t.Helper()
	var said object
	if err := json.Unmarshal(p.get(t, "/api/v1/patients/"+p.patient+path, p.nurse).expect(t, 200).body, &said); err != nil {
		t.Fatal(err)
	}
	return said
}

// The patient page in a browser whose clock is in Tokyo: the breach first, both pressures, the days, open items, and actions
// by key.
func TestConsolePatient(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	g := newPatientPage(t)
	papers := t.TempDir()
	var did struct {
		Clicks, Keys int
		Paper        string
	}
	t.Run("glance", func(t *testing.T) {
		browser.run(t, g.practice, "console_patient.mjs", object{
			"password": password, "name": glancedName, "papers": papers, "summary": g.about(t, "/vitals/summary/"), "days": g.about(t, "/data-days/"),
			"clock": g.at.Add(-3 * time.Minute).In(g.zone).Format("03:04 PM"),
		}, &did)
		t.Logf("a patient's review took %d clicks and %d keys", did.Clicks, did.Keys)
		g.wantActions(t)
		paper, err := os.ReadFile(filepath.Join(papers, did.Paper))
		if err != nil || !strings.HasPrefix(string(paper), "%PDF-") {
			t.Errorf("the report is %.20q: %v", paper, err)
		}
		if did.Paper != "visit-report.pdf" {
			t.Errorf("the report's file name is %s", did.Paper)
		}
		wantAt(t, g.get(t, "/api/v1/audit/events/?event=patient.read&resource_type=VisitReport", g.Admin(t)).expect(t, 200), object{"count": 1.0})
	})
	t.Run("looks", func(t *testing.T) {
		browser.run(t, g.practice, "console_patient_accessible.mjs", object{"password": password, "name": glancedName}, &map[string]any{})
	})
}

// wantActions checks the stored results of the keyboard actions.
func (p *patientPage) wantActions(t *testing.T) {
	t.Helper()
	alerts := p.get(t, "/api/v1/alerts/?patient_id="+p.patient+"&level=critical&page_size=100", p.nurse).expect(t, 200)
	for i, one := range at(t, alerts, "results").([]any) {
		wantAt(t, alerts, object{fmt.Sprintf("results.%d.acknowledged_by", i): "nurse@vigil.test", fmt.Sprintf("results.%d.notes", i): "Headache since the morning."})
		if one.(object)["status"] == "active" {
			t.Errorf("alert %v is still open", one.(object)["id"])
		}
	}
	times := p.get(t, "/api/v1/time-entries/?patient_id="+p.patient, p.nurse).expect(t, 200)
	wantAt(t, times, object{"count": 1.0, "results.0.running": false, "results.0.category": "interactive", "results.0.activity": "phone_call", "results.0.notes": "Took lisinopril late."})
	wantAt(t, p.get(t, "/api/v1/escalations/?patient_id="+p.patient, p.nurse).expect(t, 200), object{"count": 2.0, "results.0.reason": "Rising since Friday."})
	row := p.get(t, "/api/v1/triage/patients/?patient_id="+p.patient, p.nurse).expect(t, 200)
	wantAt(t, row, object{"results.0.last_reviewed_by": "nurse@vigil.test"})
}
