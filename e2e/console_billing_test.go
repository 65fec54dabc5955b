package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// Month-end review of 56 entries in a real browser: 41 without blocking reasons, 15 held back. One by one, with the filter
// set again each time, it took four clicks an entry.
func TestConsoleBilling(t *testing.T) {
	browser, p := newConsole(t, 2)
	month := fillMonth(t, p, 41, 15)
	var took struct{ Clicks, Keys int }
	browser.run(t, p, "console_billing.mjs", object{"password": sandbox.Password, "from": month + "-01"}, &took)
	t.Logf("a month's end of 56 entries took %d clicks and %d keys", took.Clicks, took.Keys)
	if took.Clicks+took.Keys > 20 {
		t.Errorf("a month's end of 56 entries took %d clicks and %d keys", took.Clicks, took.Keys)
	}
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	left := monthEnd(t, p, admin, month)
	for _, row := range left {
		if row["lifecycle_status"] == "pending_review" && row["ready"] == true {
			t.Errorf("%v was not reviewed", row["claim_id"])
		}
	}
	reviews := p.get(t, "/api/v1/audit/events/?event=billing.review&page_size=100", admin).expect(t, 200)
	if n := at(t, reviews, "count").(float64); n < 82 { // 41, reverted, and 41 again
		t.Errorf("%v reviews are in the audit trail", n)
	}
	wantAt(t, reviews, object{"results.0.actor_email": "billing@vigil.example"})
}

// monthEnd returns a month's entries that are still to be reviewed or sent.
func monthEnd(t *testing.T, p *practice, token, month string) (rows []object) {
	t.Helper()
	for _, row := range at(t, p.get(t, "/api/v1/billing/month-end/?month="+month, token).expect(t, 200), "results").([]any) {
		rows = append(rows, row.(object))
	}
	return rows
}

// fillMonth fills the previous month, in the practice's zone, with ready entries without blocking reasons and with held
// ones.
func fillMonth(t *testing.T, p *practice, ready, held int) (month string) {
	t.Helper()
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	practice, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(practice)
	last := time.Date(now.Year(), now.Month(), 0, 8, 0, 0, 0, practice) // time can be logged for 35 days: the month's last three days are in range
	month = last.Format("2006-01")
	var provider any
	for _, user := range at(t, p.get(t, "/api/v1/users/?page_size=100", admin).expect(t, 200), "results").([]any) {
		if user.(object)["role"] == "provider" {
			provider = user.(object)["id"]
		}
	}
	for _, row := range monthEnd(t, p, admin, month) {
		switch {
		case row["lifecycle_status"] != "pending_review":
		case row["ready"] == true:
			ready--
		default:
			held--
		}
	}
	for i := range ready + held {
		patient := text(t, p.post(t, "/api/v1/patients/", admin, object{
			"first_name": "Grace", "last_name": fmt.Sprint("Hall", string(rune('A'+i%26)), string(rune('a'+i/26))), "date_of_birth": "1950-02-03",
			"gender": "female", "icd10_codes": []string{"I10"}, "primary_provider_id": provider,
		}).expect(t, 201), "id")
		p.post(t, "/api/v1/patients/"+patient+"/consents/", admin, object{
			"type": "rpm", "method": "written", "granted_at": last.AddDate(0, -2, 0).Format(time.DateOnly),
		}).expect(t, 201)
		if i >= ready { // manual, without recorded minutes
			p.post(t, "/api/v1/billing/entries/manual-create/", admin, object{
				"patient_id": patient, "cpt_code": "99457", "service_date": last.Format(time.DateOnly), "duration_minutes": 20,
			}).expect(t, 201)
			continue
		}
		p.post(t, "/api/v1/time-entries/", admin, object{
			"patient_id": patient, "category": "interactive", "activity": "phone_call", "contact_method": "phone", "duration_seconds": 1440,
			"started_at": last.AddDate(0, 0, -(i % 3)).Add(time.Duration(i/3) * 30 * time.Minute).UTC().Format(time.RFC3339),
			"notes":      "Talked about the week.",
		}).expect(t, 201)
	}
	p.post(t, "/api/v1/billing/run/", admin, object{"job": "time"}).expect(t, 200)
	return month
}
