package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/e2e/payer"
)

// sendsClaims are the settings of a practice that sends claims.
var sendsClaims = []string{
	"VIGIL_PRACTICE_NAME=ELM STREET CLINIC", "VIGIL_PRACTICE_NPI=1234567893", "VIGIL_PRACTICE_TAX_ID=123456789", "VIGIL_PRACTICE_TAXONOMY=207Q00000X",
	"VIGIL_PRACTICE_ADDRESS=1 ELM ST", "VIGIL_PRACTICE_CITY=ALBANY", "VIGIL_PRACTICE_STATE=NY", "VIGIL_PRACTICE_ZIP=122071234", "VIGIL_PRACTICE_PHONE=5185550100",
	"VIGIL_CLAIMS_SUBMITTER_ID=SUB1", "VIGIL_CLAIMS_SUBMITTER_CONTACT=BILLING", "VIGIL_CLAIMS_RECEIVER_ID=HOUSE1", "VIGIL_CLAIMS_RECEIVER_NAME=CLEARING HOUSE",
}

// reviewedClaim creates a reviewed 99457 entry of an insured patient, and returns its path and the month of its service.
func reviewedClaim(t *testing.T, p *practice) (path, month string) {
	t.Helper()
	admin := p.Admin(t)
	insurer := at(t, p.post(t, "/api/v1/billing/payers/", admin, object{"name": "Acme", "payer_id": "AC", "edi_payer_id": "60054", "claim_filing_code": "CI"}).expect(t, 201), "id")
	provider := at(t, p.post(t, "/api/v1/auth/register/", admin, object{
		"email": "doctor@vigil.test", "password": password, "first_name": "Dan", "last_name": "Ode", "role": "provider", "npi": "1245319599", "taxonomy_code": "207R00000X",
	}).expect(t, 201), "id")
	patient := p.patient(t, object{
		"icd10_codes": []string{"I10"}, "primary_provider_id": provider, "insurance": object{"payer_id": insurer, "member_id": "W1"},
		"address": object{"line1": "1 Main St", "city": "Troy", "state": "NY", "zip": "12180"},
	})
	p.post(t, "/api/v1/patients/"+patient+"/consents/", admin, object{"type": "rpm", "method": "written", "granted_at": now().AddDate(0, -2, 0).Format(time.RFC3339)}).expect(t, 201)
	p.post(t, "/api/v1/time-entries/", admin, object{
		"patient_id": patient, "category": "interactive", "contact_method": "phone", "notes": "Readings gone through.", "duration_seconds": 1200,
		"started_at": now().Add(-2 * time.Hour).Format(time.RFC3339),
	}).expect(t, 201)
	p.post(t, "/api/v1/billing/run/", admin, object{"job": "time"}).expect(t, 200)
	listed := p.get(t, "/api/v1/billing/entries/?patient_id="+patient, admin).expect(t, 200)
	path = "/api/v1/billing/entries/" + text(t, listed, "results.0.id") + "/"
	p.post(t, path+"review/", admin, object{}).expect(t, 200)
	return path, text(t, listed, "results.0.service_date")[:7]
}

// wantNothingSent exports a claim that lacks its address: the export names it and reports it by its exit status, for
// scheduled runs.
func (p *practice) wantNothingSent(t *testing.T, entry, month, out string) {
	t.Helper()
	patient := "/api/v1/patients/" + text(t, p.get(t, entry, p.Admin(t)).expect(t, 200), "patient_id") + "/"
	address := at(t, p.get(t, patient, p.Admin(t)).expect(t, 200), "address")
	live := func(address any) {
		t.Helper()
		merged, err := json.Marshal(object{"address": address})
		if err != nil {
			t.Fatal(err)
		}
		p.send(t, http.MethodPatch, patient, p.Admin(t), string(merged), "Content-Type", "application/merge-patch+json").expect(t, 200)
	}
	live(nil)
	status, said, complaint := vigil(t, p.Env, "", "claims", "export", "--month", month, "--out", out, "--dir", p.Dir)
	if status != 1 || said != "" || !strings.Contains(complaint, "address") || !strings.Contains(complaint, "1 of 1 lines were not sent") {
		t.Errorf("the export ended with %d: %s%s", status, said, complaint)
	}
	live(address)
}

// The commands exchange claims through a folder while the service runs: they decrypt what is sealed, and the audit trail
// verifies.
func TestClaimsByFolder(t *testing.T) {
	t.Parallel()
	p := newPractice(t, sendsClaims...).serve(t, "")
	entry, month := reviewedClaim(t, p)
	out, in := t.TempDir(), t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		status, said, complaint := vigil(t, p.Env, "", append(args, "--dir", p.Dir)...)
		if status != 0 || complaint != "" {
			t.Fatalf("vigil %v ended with %d: %s%s", args, status, said, complaint)
		}
		return said
	}

	p.wantNothingSent(t, entry, month, out)
	if said := run("claims", "export", "--month", month, "--out", out); !strings.Contains(said, "1 claims, 1 lines, 51.77") {
		t.Errorf("export printed %q", said)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.837"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	submission, err := payer.Read837P(raw)
	if err != nil {
		t.Fatal(err)
	}
	wantAt(t, p.get(t, entry, p.Admin(t)).expect(t, 200), object{"lifecycle_status": "submitted", "claim_control_number": submission.Claims[0].ControlNumber})
	if said := run("claims", "export", "--month", month, "--out", out); said != "" {
		t.Errorf("the second export printed %q", said)
	}

	house := &payer.Payer{ID: "HOUSE1", Name: "CLEARING HOUSE", At: now()}
	for name, answer := range map[string][]byte{"1.999": house.Write999(submission), "2.277": house.Write277CA(submission, nil), "3.835": house.Write835(submission, nil)} {
		if err := os.WriteFile(filepath.Join(in, name), answer, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said := run("claims", "import", in); strings.Count(said, "1 applied, 0 unmatched") != 3 {
		t.Errorf("import printed %q", said)
	}
	wantAt(t, p.get(t, entry, p.Admin(t)).expect(t, 200), object{"lifecycle_status": "paid", "paid_total": 51.77})
	if said := run("claims", "import", in); strings.Count(said, "applied before") != 3 {
		t.Errorf("the second import printed %q", said)
	}
	if status, said, complaint := vigil(t, p.Env, "", "audit", "verify", "--dir", p.Dir); status != 0 {
		t.Errorf("the audit trail does not verify: %s%s", said, complaint)
	}
}
