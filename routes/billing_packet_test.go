package routes_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The packets of a device entry and a time entry show the reason, the patient, the device, the values, and when each was
// recorded.
func TestEvidencePacket(t *testing.T) {
	c := newClinic(t)
	if _, err := c.app.DB().Update("users", dbx.Params{"npi": "1234567893", "taxonomy_code": "207R00000X"}, dbx.HashExp{"id": c.people[authz.Provider].Id}).Execute(); err != nil {
		t.Fatal(err)
	}
	number := c.people[authz.Provider].Number()
	nurse := "/users/" + strconv.FormatInt(c.people[authz.Nurse].Number(), 10) + "/"
	c.request(authz.Admin, "PATCH", nurse, object{"credential": strings.Repeat("x", 41)}).wantFields("credential")
	c.request(authz.Admin, "PATCH", nurse, object{"credential": "RN"}).want(200).wantAt(object{"credential": "RN"})
	id := c.enroll(object{
		"icd10_codes": []string{"I10"}, "primary_provider_id": number, "mrn": "MRN-77", "date_of_birth": "1985-03-15", "insurance": object{"member_id": "1EG4TE5MK73"},
	})
	c.consent(id) // dated in November, recorded now
	c.storeDeviceDays(id, "D-1", c.now.AddDate(0, 0, -31), 16)
	if _, err := c.app.DB().NewQuery(`UPDATE devices SET manufacturer = 'A&D', model = 'UC-352BLE', serial_number = 'SN-77'`).Execute(); err != nil {
		t.Fatal(err)
	}
	order := func(kind, dated, text string) {
		c.request(authz.Nurse, "POST", "/patients/"+id+"/orders/", object{"kind": kind, "dated": dated, "text": text, "author_id": number}).want(201)
	}
	order("plan_of_care", "2025-11-03", "Markedplan daily")
	order("rpm_order", "2025-11-02", "Weigh daily")
	order("plan_of_care", "2025-12-01", "Weigh twice")
	order("plan_of_care", "2026-01-15", "Later than the period")
	c.request(authz.Nurse, "POST", "/time-entries/", object{
		"patient_id": id, "category": "interactive", "started_at": c.now.Add(-30 * time.Hour).Format(time.RFC3339), "duration_seconds": 1200, "notes": "Talked",
		"activity": "phone_call", "contact_method": "phone",
	}).want(201)
	c.request(authz.DataMonitor, "POST", "/billing/run/", nil).want(200)
	evidence := func(code string) (reply, string) {
		entries := c.request(authz.DataMonitor, "GET", "/billing/entries/?cpt_code="+code, nil).results()
		if len(entries) != 1 {
			t.Fatalf("%s was billed %d times", code, len(entries))
		}
		path := "/billing/entries/" + entries[0]["id"].(string) + "/evidence/"
		return c.request(authz.DataMonitor, "GET", path, nil).want(200), path
	}
	supply, path := evidence("99454")
	supply.wantAt(object{
		"rendering_provider.npi": "1234567893", "rendering_provider.taxonomy_code": "207R00000X", "rendering_provider.id": float64(number),
		"plan_of_care.dated": "2025-12-01", "plan_of_care.text": "Weigh twice", "plan_of_care.recorded_at": "2026-01-15T13:45:00Z",
	})
	first := func(answer reply, name string) object { return answer.at(name).([]any)[0].(object) }
	if orders := supply.at("orders").([]any); len(orders) != 3 {
		t.Errorf("the orders are %v", orders)
	}
	wantMembers(t, "order", first(supply, "orders"), object{
		"kind": "rpm_order", "dated": "2025-11-02", "recorded_at": "2026-01-15T13:45:00Z", "author_id": float64(number), "text": "Weigh daily",
		"recorded_by": c.people[authz.Nurse].Email(),
	})
	wantMembers(t, "reading", first(supply, "readings"), object{"origin": "device", "source": "gateway"})
	if values := first(supply, "readings")["values"].(object); len(values) != 1 || values["weight_kg"] != 80.0 {
		t.Errorf("the values are %v", values)
	}
	wantMembers(t, "device", first(supply, "device_assignments"), object{"manufacturer": "A&D", "model": "UC-352BLE", "serial_number": "SN-77", "udi": nil})
	wantMembers(t, "consent", first(supply, "consents"), object{"granted_at": "2025-11-01T04:00:00Z", "recorded_at": "2026-01-15T13:45:00Z"})
	if hash, _ := supply.at("audit_chain.head_hash").(string); len(hash) < 32 {
		t.Errorf("the chain ends with %q", hash)
	}
	supply.wantAt(object{
		"beneficiary.patient_id": id, "beneficiary.date_of_birth": "1985-03-15", "beneficiary.mrn": "MRN-77", "beneficiary.member_id": "1EG4TE5MK73",
		"beneficiary.time_zone": "America/New_York", "practice.time_zone": "America/New_York", "supervising_practitioner.npi": "1234567893",
	})
	minutes, _ := evidence("99457")
	wantMembers(t, "who spent the time", first(minutes, "time_entries"), object{"role": "nurse", "credential": "RN"})
	wantMembers(t, "time", first(minutes, "time_entries"), object{"started_at": "2026-01-14T07:45:00Z", "recorded_at": "2026-01-15T13:45:00Z", "author": c.people[authz.Nurse].Email()})
	if patientBody, _ := first(minutes, "time_entries")["person"].(string); !strings.Contains(patientBody, ", ") {
		t.Errorf("the time is %q's", patientBody)
	}
	if paper := c.request(authz.DataMonitor, "GET", path+"?format=pdf", nil).want(200); !strings.HasPrefix(paper.body, "%PDF-") {
		t.Error("the packet is no PDF")
	}
}

// An entry that was created manually may have no evidence; the packet states this.
func TestEvidencePacketWithoutEvidence(t *testing.T) {
	c := newClinic(t)
	line := c.billedLine(c.enroll(nil), "99454", "2026-01-10", "2025-12-12", "2026-01-10", "pending_review")
	c.request(authz.DataMonitor, "GET", "/billing/entries/"+line+"/evidence/", nil).want(200).wantAt(object{"rendering_provider": nil, "plan_of_care": nil})
	c.request(authz.DataMonitor, "GET", "/billing/entries/"+line+"/evidence/?format=pdf", nil).want(200)
}

// With any number of days, the packet is a PDF; VIGIL_PDF_FOLDER keeps them to be looked at.
func TestEvidencePacketPages(t *testing.T) {
	c := newClinic(t)
	for _, days := range []int{2, 5, 16, 21, 28} {
		id := c.enroll(object{"last_name": "Packet" + strconv.Itoa(days), "icd10_codes": []string{"I10"}, "primary_provider_id": c.people[authz.Provider].Number()})
		c.consent(id)
		c.storeDeviceDays(id, "D-"+strconv.Itoa(days), c.now.AddDate(0, 0, -31), days)
	}
	c.request(authz.DataMonitor, "POST", "/billing/run/", nil).want(200)
	entries := c.request(authz.DataMonitor, "GET", "/billing/entries/", nil).results()
	if len(entries) < 5 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, entry := range entries {
		paper := c.request(authz.DataMonitor, "GET", "/billing/entries/"+entry["id"].(string)+"/evidence/?format=pdf", nil).want(200)
		if !strings.HasPrefix(paper.body, "%PDF-") {
			t.Errorf("%s is no PDF", entry["claim_id"])
		}
		if folder := os.Getenv("VIGIL_PDF_FOLDER"); folder != "" {
			if err := os.WriteFile(filepath.Join(folder, entry["claim_id"].(string)+".pdf"), []byte(paper.body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
