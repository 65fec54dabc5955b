package e2e

import (
	"net/url"
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// A patient is enrolled in the browser, and the service stores what was entered.
func TestConsoleEnrollment(t *testing.T) {
	browser, p := newConsole(t, 8)
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	const payer, unfinished, last = "Zwickau Mutual", "Quillfeather", "Costa-Almeida"
	id := at(t, p.post(t, "/api/v1/billing/payers/", admin, object{
		"name": payer, "payer_id": "ZM", "edi_payer_id": "ZM123", "claim_filing_code": "CI",
	}).expect(t, 201), "id")
	p.post(t, "/api/v1/patients/", admin, object{
		"first_name": "Ida", "last_name": unfinished, "date_of_birth": "1950-02-03", "gender": "female", "icd10_codes": []string{"I10"},
		"monitoring_schedule": object{"blood_pressure": object{"per_day": 1, "days": []string{"monday", "friday"}}},
	}).expect(t, 201)
	var did struct {
		Cost    struct{ Clicks, Keys int }
		Brought struct {
			MRN          string
			Clicks, Keys int
		}
	}
	browser.run(t, p, "console_enrollment.mjs", object{
		"password": sandbox.Password, "payer": payer, "provider": "Priya Raman", "device": "ENROL-1", "unfinished": unfinished, "last": last,
	}, &did)
	t.Logf("enrolled by hand with %d clicks and %d keys, from the EMR with %d and %d", did.Cost.Clicks, did.Cost.Keys, did.Brought.Clicks, did.Brought.Keys)

	find := func(search string) object {
		t.Helper()
		return at(t, p.get(t, "/api/v1/patients/?search="+url.QueryEscape(search), admin).expect(t, 200), "results.0").(object)
	}
	steps := func(patient object, want map[string]string) {
		t.Helper()
		found := p.get(t, "/api/v1/patients/"+patient["id"].(string)+"/enrolment/", admin).expect(t, 200)
		for _, step := range at(t, found, "steps").([]any) {
			step := step.(object)
			if state, ok := want[step["step"].(string)]; ok != (step["state"] != "done") || ok && state != step["state"] {
				t.Errorf("%s is %s: %v", step["step"], step["state"], step["missing"])
			}
		}
	}
	made := find(last)
	steps(made, map[string]string{"person": "missing", "reading": "waiting"}) // the EMR does not have the typed patient
	wantAt(t, p.get(t, "/api/v1/patients/"+made["id"].(string)+"/", admin).expect(t, 200), object{
		"time_zone": "America/Chicago", "insurance.payer_id": id, "insurance.member_id": "ZM-4471-22", "icd10_codes.0": "I50.9", "icd10_codes.1": "I10", "address.zip": "62704",
	})
	if orders := p.get(t, "/api/v1/patients/"+made["id"].(string)+"/orders/", admin).expect(t, 200); at(t, orders, "count") != 1.0 {
		t.Errorf("want one order stored: one was refused and one accepted: %s", orders.body)
	}
	steps(find(did.Brought.MRN), map[string]string{"reading": "waiting"})
	wantAt(t, p.get(t, "/api/v1/patients/"+find(unfinished)["id"].(string)+"/", admin).expect(t, 200), object{
		"ssn_last4": "1121", "insurance.payer_id": id, "insurance.relationship": "spouse", "insurance.subscriber.first_name": "Sam", "time_zone": "America/Denver",
		"monitoring_schedule.weight.per_day": 2.0, "monitoring_schedule.blood_pressure.days.0": "monday",
	})
}

// With the EMR's chart an imported patient is enrolled with half of the keys that it takes without, and nothing is missing but the first reading.
func TestConsoleEnrollmentFromChart(t *testing.T) {
	browser, p := newConsole(t, 4, "VIGIL_EMR_CONTEXT=true")
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	p.post(t, "/api/v1/billing/payers/", admin, object{"name": "Aetna", "payer_id": "AET", "edi_payer_id": "60054", "claim_filing_code": "CI"})
	var did struct {
		Brought struct {
			MRN          string
			Clicks, Keys int
		}
	}
	browser.run(t, p, "console_enrollment.mjs", object{"password": sandbox.Password, "provider": "Priya Raman", "device": "ENROL-1", "chart": true}, &did)
	t.Logf("enrolled from the EMR and its chart with %d clicks and %d keys", did.Brought.Clicks, did.Brought.Keys)
	const without = 32 // measured by TestConsoleEnrollment
	if did.Brought.Keys > without/2 {
		t.Errorf("%d keys, want at most %d", did.Brought.Keys, without/2)
	}
	patient := at(t, p.get(t, "/api/v1/patients/?search="+did.Brought.MRN, admin).expect(t, 200), "results.0.id").(string)
	for _, step := range at(t, p.get(t, "/api/v1/patients/"+patient+"/enrolment/", admin).expect(t, 200), "steps").([]any) {
		step := step.(object)
		if want := map[string]string{"reading": "waiting"}[step["step"].(string)]; step["state"] != want && (want != "" || step["state"] != "done") {
			t.Errorf("%s is %s: %v", step["step"], step["state"], step["missing"])
		}
	}
}
