package e2e

import (
	"strconv"
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// shellParts are the elements around every view of the console, each in a demanding setting; see console_layout.mjs.
var shellParts = []struct {
	part    string
	options object
}{
	{"keys", object{}},
	{"errors", object{}},
	{"address", object{}},
	{"staff", object{}},
	{"zones", object{"timezoneId": "Asia/Tokyo", "locale": "en-US"}}, // a traveling laptop
	{"find", object{}},
	{"timer", object{}},
	{"title", object{}},
	{"rights", object{}},
	{"units", object{}},
	{"narrow", object{"colorScheme": "dark"}},
}

// The elements around every view in a real browser, and what the service stores afterwards.
func TestConsoleShell(t *testing.T) {
	browser, p := newConsole(t, 12)
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	nurse := p.signInWith(t, "nurse@vigil.example", sandbox.Password)
	rows := at(t, p.get(t, "/api/v1/triage/patients/", nurse).expect(t, 200), "results").([]any)
	id := text(t, p.get(t, "/api/v1/patients/"+rows[len(rows)-1].(object)["patient_id"].(string)+"/", nurse).expect(t, 200), "id")
	patient := p.get(t, "/api/v1/patients/"+id+"/", nurse).expect(t, 200)
	newest := p.get(t, "/api/v1/ingestion/observations/?patient_id="+id, nurse).expect(t, 200)
	for _, one := range shellParts {
		t.Run(one.part, func(t *testing.T) {
			open := at(t, p.get(t, "/api/v1/alerts/?level=critical&status=active", nurse).expect(t, 200), "count")
			var did struct{ Typed int }
			browser.run(t, p, "console_layout.mjs", object{
				"password": sandbox.Password, "part": one.part, "options": one.options, "patient": id, "mrn": text(t, patient, "mrn"),
				"first": text(t, patient, "first_name"), "last": text(t, patient, "last_name"), "measured": text(t, newest, "results.0.measured_at"),
				"criticals": open, "device": "SHELL-1", "secret": demoSecret(t, p.Dir),
			}, &did)
			if after := shellAfter[one.part]; after != nil {
				after(t, p, admin, id, did.Typed)
			}
		})
	}
}

// shellAfter checks the stored result of each part.
var shellAfter = map[string]func(t *testing.T, p *practice, admin, patient string, typed int){
	"staff": func(t *testing.T, p *practice, admin, patient string, typed int) {
		const address = "provider@vigil.example"
		wantAt(t, p.get(t, "/api/v1/escalations/?patient_id="+patient, admin).expect(t, 200), object{"results.0.assigned_to": address})
		if typed*2 > len(address) { // the characters that an address took before
			t.Errorf("assigning takes %d keys", typed)
		}
	},
	"timer": func(t *testing.T, p *practice, admin, patient string, _ int) {
		wantAt(t, p.get(t, "/api/v1/time-entries/?patient_id="+patient, admin).expect(t, 200), object{
			"results.0.notes": "Takes the pills again.", "results.0.category": "interactive", "results.0.running": false,
		})
	},
	"units": func(t *testing.T, p *practice, admin, patient string, _ int) {
		wantAt(t, p.get(t, "/api/v1/ingestion/observations/?patient_id="+patient+"&observation_type=weight", admin).expect(t, 200), object{"results.0.weight_kg": 69.99})
		wantAt(t, p.get(t, "/api/v1/ingestion/observations/?patient_id="+patient+"&observation_type=body_temperature", admin).expect(t, 200), object{"results.0.temperature_c": 37.0})
	},
}

// A session across tabs, a reload and a pause: no stored value can open it, and unsaved notes are kept.
func TestConsoleSession(t *testing.T) {
	browser, p := newConsole(t, 3)
	for i, part := range []string{"tabs", "drafts", "absence", "names"} {
		t.Run(strconv.Itoa(i+1)+" "+part, func(t *testing.T) {
			var nothing object
			browser.run(t, p, "console_session.mjs", object{"password": sandbox.Password, "part": part}, &nothing)
		})
	}
}
