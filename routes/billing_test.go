package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// storeDeviceDays assigns a device from a day on and stores readings on the given number of days.
func (c *clinic) storeDeviceDays(patient, device string, since time.Time, days int) {
	c.t.Helper()
	c.insert("devices", dbx.Params{
		"device_id": device, "status": "assigned", "patient": patient, "setup_completed_at": collections.FormatInstant(since), "setup_completed_by": "ma@example.org",
	})
	c.insert("device_assignments", dbx.Params{"device_id": device, "patient": patient, "assigned_at": collections.FormatInstant(since)})
	for i := range days {
		at := since.AddDate(0, 0, i)
		id := collections.NewUUID()
		c.insert("observations", dbx.Params{
			"id": id, "patient": patient, "observation_type": "weight", "measured_at": collections.FormatInstant(at.Add(time.Minute)), "device_id": device,
			"source": "gateway", "weight_kg": 80, "status": "final", "reading_key": id, "created_at": collections.FormatInstant(at),
		})
		c.insert("reading_days", dbx.Params{
			"patient": patient, "day": at.In(newYork).Format(time.DateOnly), "observation_type": "weight", "first_observation": id, "readings": 1, "device_readings": 1,
		})
	}
}

func (c *clinic) consent(patient string) {
	c.t.Helper()
	c.request(authz.MA, "POST", "/patients/"+patient+"/consents/", object{"type": "rpm", "method": "written", "granted_at": "2025-11-01"}).want(201)
}

// logCall logs minutes of a telephone call with a patient.
func (c *clinic) logCall(patient, start string, minutes int) reply {
	c.t.Helper()
	return c.request(authz.Nurse, "POST", "/time-entries/", object{
		"patient_id": patient, "category": "interactive", "activity": "phone_call", "contact_method": "phone", "started_at": start,
		"duration_seconds": minutes * 60, "notes": "Talked",
	}).want(201)
}

func TestDeviceBilling(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"I10"}})
	near := c.enroll(object{"icd10_codes": []string{"I10"}})
	c.consent(id)
	begin := c.now.AddDate(0, 0, -31)
	c.storeDeviceDays(id, "D-1", begin, 16)
	c.storeDeviceDays(near, "D-2", c.now.AddDate(0, 0, -20), 14)
	run := c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200).object()
	made := run["created"].([]any)
	if len(made) != 2 {
		t.Fatalf("the run created %v and skipped %v", made, run["skipped"])
	}
	if again := c.request(authz.Admin, "POST", "/billing/run/", nil).want(200).object(); len(again["created"].([]any)) != 0 {
		t.Errorf("a second run created %v", again)
	}
	entries := c.request(authz.DataMonitor, "GET", "/billing/entries/?cpt_code=99454", nil).results()
	if len(entries) != 1 || entries[0]["amount"] != 43.02 || entries[0]["transmission_days"] != 16.0 || entries[0]["status"] != "pending" {
		t.Fatalf("the entries are %v", entries)
	}
	path := "/billing/entries/" + entries[0]["id"].(string) + "/"
	evidence := c.request(authz.DataMonitor, "GET", path+"evidence/", nil).want(200).object()
	if readings := evidence["readings"].([]any); len(readings) != 16 {
		t.Errorf("the evidence names %d readings", len(readings))
	}
	if paper := c.request(authz.DataMonitor, "GET", path+"evidence/?format=pdf", nil).want(200); !strings.HasPrefix(paper.body, "%PDF-") {
		t.Error("the evidence is no PDF")
	}
	list := c.request(authz.Provider, "GET", "/billing/near-billable/", nil).results()
	if len(list) != 2 || list[0]["patient_id"] != near || list[0]["missing"] != "2 more days" {
		t.Errorf("near a code are %v", list)
	}
	explained := c.request(authz.ClinicalManager, "GET", "/billing/explain/"+near+"/", nil).want(200).body
	for _, words := range []string{`"2 more days"`, `"no consent"`, `"20 more minutes"`, `"a first 99454"`} {
		if !strings.Contains(explained, words) {
			t.Errorf("the explanation lacks %s: %s", words, explained)
		}
	}
	c.request(authz.Provider, "GET", "/billing/eligibility/"+near+"/", nil).want(200).wantAt(object{"eligible": false})
	c.request(authz.Provider, "GET", path, nil).want(404) // not one of the provider's patients
}

func TestClaimMoves(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"I10"}, "last_name": "=Lovelace", "primary_provider_id": c.people[authz.Provider].Number()})
	c.consent(id)
	c.logCall(id, "2026-01-14T14:00:00Z", 20)
	payer := c.request(authz.DataMonitor, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC"}).want(201).object()
	c.request(authz.DataMonitor, "POST", "/billing/payers/", object{"name": "Other", "payer_id": "ac"}).wantFields("payer_id")
	for _, rate := range []any{-1, 10.005, 1e9, "5"} {
		c.request(authz.Admin, "POST", "/billing/payer-rates/", object{"payer_id": payer["id"], "cpt_code": "99457", "rate": rate, "effective_date": "2026-01-01"}).wantFields("rate")
	}
	c.request(authz.Admin, "POST", "/billing/payer-rates/", object{"payer_id": payer["id"], "cpt_code": "99457", "rate": 50.5, "effective_date": "2026-01-01"}).want(201)
	make := func(changes object) reply {
		body := object{"patient_id": id, "cpt_code": "99457", "service_date": "2026-01-14", "duration_minutes": 20}
		for k, v := range changes {
			body[k] = v
		}
		return c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", body)
	}
	make(object{"duration_minutes": 1441}).wantFields("duration_minutes")
	make(object{"duration_minutes": 0}).wantFields("duration_minutes")
	make(object{"cpt_code": "99445", "service_date": "2025-12-31"}).wantFields("cpt_code") // valid from 2026
	make(object{"service_date": "2026-01-16"}).wantFields("service_date")
	make(object{"icd10_codes": []string{"nonsense"}}).wantFields("icd10_codes.0")
	first := make(nil).want(201).wantAt(object{"amount": 47.87, "payer": "Self-pay", "auto_generated": false, "status": "pending", "claim_id": "CLM-2026-000001", "rendering_provider": "Person, Test"})
	double := make(object{"icd10_codes": []string{"Q99.7"}}).want(201)
	if warnings := double.object()["warnings"].([]any); !slices.Contains(warnings, any("possible_duplicate")) || !slices.Contains(warnings, any("unknown_icd10")) {
		t.Errorf("the warnings are %v", warnings)
	}
	at := func(r reply, move string) string {
		return "/billing/entries/" + r.object()["id"].(string) + "/" + move + "/"
	}
	as := authz.DataMonitor
	c.request(as, "POST", at(double, "review"), nil).want(400, "duplicate_entry")
	c.request(as, "POST", at(double, "void"), object{"reason": "Twice"}).want(200).wantAt(object{"status": "voided"})
	c.request(as, "POST", at(first, "submit"), nil).want(400, "invalid_transition")
	c.request(as, "POST", at(first, "review"), object{"notes": "Fine"}).want(200).wantAt(object{"lifecycle_status": "reviewed", "status": "pending"})
	c.request(as, "POST", at(first, "return"), object{"reason": "Wait"}).want(200)
	c.request(as, "POST", at(first, "review"), nil).want(200)
	csv := c.request(as, "GET", "/billing/claims-exports/?format=csv&reviewed_only=true", nil).want(200).body
	if !strings.Contains(csv, `"'=Lovelace, Ada"`) || !strings.Contains(csv, `"Person, Test"`) || strings.Count(csv, "\r\n") != 2 {
		t.Errorf("the export is %q", csv)
	}
	c.request(as, "GET", "/billing/claims-exports/", nil).want(200).wantAt(object{"total_claims": 1.0, "total_amount": 47.87})
	c.request(as, "GET", "/billing/claims-exports/?payer_id=99", nil).want(404)
	c.request(as, "POST", "/billing/claims/submit/", object{"entry_ids": []any{first.object()["id"], "x"}}).wantFields("entry_ids.1")
	unknown := collections.NewUUID()
	batch := c.request(as, "POST", "/billing/claims/submit/", object{"entry_ids": []any{first.object()["id"], first.object()["id"], unknown, double.object()["id"]}}).want(200)
	batch.wantAt(object{"submitted": 1.0, "skipped": 3.0})
	c.request(as, "POST", at(first, "deny"), object{"code": "CO-16", "description": "Lacks information"}).want(200)
	c.request(as, "POST", at(first, "resubmit"), object{"corrections": object{"icd10_codes": []string{"i11.9"}}}).want(200).wantAt(object{"resubmission_count": 1.0, "claim_frequency_code": "7"})
	c.request(as, "POST", at(first, "deny"), object{"code": "CO-50", "description": "Not covered", "denial_date": "2026-01-15"}).want(200)
	c.request(as, "POST", at(first, "appeal"), object{"reason": "It is covered", "reference": "A-1"}).want(200).wantAt(object{"status": "appealed"})
	c.request(as, "POST", at(first, "pay"), object{"amount": 10.001, "payment_date": "2026-01-15", "reference": "EFT"}).wantFields("amount")
	paid := c.request(as, "POST", at(first, "pay"), object{"amount": 40.5, "payment_date": "2026-01-15", "reference": "EFT"}).want(200)
	paid.wantAt(object{"status": "paid", "payment.amount": 40.5})
	if history := paid.object()["history"].([]any); len(history) != 10 {
		t.Errorf("the history has %d steps: %v", len(history), history)
	}
	c.wantRoles("POST", at(first, "pay"), object{}, authz.Admin, authz.DataMonitor)
	if n := c.request(as, "GET", "/billing/icd10-codes/?search=e119", nil).results(); len(n) != 1 || n[0]["code"] != "E11.9" {
		t.Errorf("found %v", n)
	}
	if n := c.request(authz.MA, "GET", "/billing/cpt-codes/", nil).results(); len(n) != 8 {
		t.Errorf("the catalog has %d codes", len(n))
	}
	for _, path := range []string{"/billing/payer-rates/", "/billing/payers/", "/billing/icd10-codes/", "/billing/cpt-codes/"} {
		c.request(as, "GET", path, nil).want(200).wantAt(object{"previous": nil})
		c.request(as, "GET", path+"?page=0", nil).wantFields("page")
		c.request(as, "GET", path+"?page=99999", nil).want(404, "not_found")
	}
	second := c.request(authz.MA, "GET", "/billing/cpt-codes/?page=2&page_size=3", nil).want(200)
	if n := second.at("results").([]any); len(n) != 3 || n[0].(object)["code"] != "99458" || second.at("count") != 8.0 || !strings.Contains(second.text("next"), "page=3") {
		t.Errorf("the second page of the catalog is %s", second.body)
	}
	if n := c.request(authz.MA, "GET", "/billing/icd10-codes/?search=diabetes&page=2&page_size=2", nil).want(200).at("results").([]any); len(n) != 2 {
		t.Errorf("the second page of codes is %v", n)
	}
}

func TestTimeEntries(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"I10"}})
	c.consent(id)
	log := func(role authz.Role, changes object) reply {
		body := object{"patient_id": id, "category": "interactive", "started_at": "2026-01-15T10:00:00Z", "duration_seconds": 1200, "notes": "Talked", "activity": "phone_call"}
		for k, v := range changes {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		return c.request(role, "POST", "/time-entries/", body)
	}
	log(authz.Nurse, object{"notes": nil}).wantFields("notes")
	log(authz.Nurse, object{"duration_seconds": 0}).wantFields("duration_seconds")
	log(authz.Nurse, object{"duration_seconds": 1441 * 60}).wantFields("duration_seconds")
	log(authz.Nurse, object{"started_at": "2026-01-16T10:00:00Z"}).wantFields("started_at")
	log(authz.Nurse, object{"started_at": "2025-12-01T10:00:00Z"}).wantFields("started_at")
	entry := log(authz.Nurse, nil).want(201).object()
	log(authz.Nurse, object{"started_at": "2026-01-15T10:19:00Z"}).want(400, "overlapping_time").wantAt(object{"time_entry_id": entry["id"]})
	log(authz.MA, object{"activity": "triage", "contact_method": "phone", "started_at": "2026-01-15T10:20:00Z", "duration_seconds": 300}).want(201)
	timer := c.request(authz.Nurse, "POST", "/time-entries/start/", object{"patient_id": id, "category": "review"}).want(201).object()
	c.request(authz.Nurse, "POST", "/time-entries/start/", object{"patient_id": id, "category": "review"}).want(400, "invalid_state")
	c.now = c.now.Add(90 * time.Minute)
	c.request(authz.MA, "POST", "/time-entries/3/stop/", nil).want(404)
	c.request(authz.Nurse, "POST", "/time-entries/3/stop/", nil).want(200).wantAt(object{"auto_stopped": true, "duration_seconds": 3600.0, "id": timer["id"]})
	c.request(authz.Nurse, "PATCH", "/time-entries/3/", object{"notes": "Read the values"}).want(200).wantAt(object{"notes": "Read the values"})
	c.request(authz.Provider, "PATCH", "/time-entries/3/", object{"notes": "Mine?"}).want(404)
	if list := c.request(authz.Nurse, "GET", "/time-entries/?month=2026-01", nil).results(); len(list) != 2 {
		t.Errorf("the nurse sees %v", list)
	}
	sums := c.request(authz.Admin, "GET", "/time-entries/summary/?month=2026-01&patient_id="+id, nil).results()
	if sums[0]["interactive_minutes"] != 25.0 || sums[0]["review_minutes"] != 60.0 || sums[0]["next_threshold_minutes"] != 40.0 {
		t.Errorf("the sums are %v", sums)
	}
	made := c.request(authz.Admin, "POST", "/billing/run/", object{"job": "time"}).want(200).object()["created"].([]any)
	if len(made) != 1 || made[0].(object)["cpt_code"] != "99457" {
		t.Fatalf("the run created %v", made)
	}
	c.request(authz.Nurse, "PATCH", "/time-entries/1/", object{"notes": "Changed"}).want(400, "invalid_state")
	c.request(authz.Nurse, "DELETE", "/time-entries/1/", nil).want(400, "invalid_state")
	c.request(authz.Nurse, "DELETE", "/time-entries/3/", nil).want(204)
	evidence := c.request(authz.Admin, "GET", "/billing/entries/"+made[0].(object)["id"].(string)+"/evidence/", nil).want(200).object()
	if times := evidence["time_entries"].([]any); len(times) != 1 || times[0].(object)["id"] != entry["id"] || times[0].(object)["notes"] != "Talked" {
		t.Errorf("the evidence names %v", times)
	}
}
