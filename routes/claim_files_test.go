package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/x12"
	"github.com/vigilhealth/vigil/routes"
)

// claimsClinic is a clinic that sends claims, with the payer that receives them.
type claimsClinic struct {
	*clinic
	payer    *payer.Payer
	insurer  any
	talked   int
	provider *collections.User
	money    *billing.Engine
}

func newClaimsClinic(t *testing.T) *claimsClinic {
	var money *billing.Engine
	h := &claimsClinic{clinic: newClinic(t, func(e *routes.Engines) { money = e.Billing })}
	money.Claims = claims.Loader{
		Practice: claims.Practice{
			Name: "ELM STREET CLINIC", NPI: "1234567893", TaxID: "123456789", Taxonomy: "207Q00000X", Address: "1 ELM ST", City: "ALBANY", State: "NY", Zip: "122071234",
			Phone: "5185550100",
		},
		Submitter: claims.Submitter{ID: "SUB1", Contact: "BILLING", ReceiverID: "HOUSE1", ReceiverName: "CLEARING HOUSE", Usage: "T", PlaceOfService: "11"},
	}
	h.money = money
	h.payer = &payer.Payer{ID: "HOUSE1", Name: "CLEARING HOUSE", At: h.now}
	h.insurer = h.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC", "edi_payer_id": "60054", "claim_filing_code": "CI"}).want(201).at("id")
	h.provider = h.people[authz.Provider]
	h.request(authz.Admin, "PATCH", fmt.Sprintf("/users/%d/", h.provider.Number()), object{"npi": "1245319599", "taxonomy_code": "207R00000X"}).want(200)
	return h
}

// insured enrolls a patient with everything a claim needs and the given minutes of calls in January.
func (cc *claimsClinic) insured(name string, minutes int, insurance object) string {
	cc.t.Helper()
	covered := object{"payer_id": cc.insurer, "member_id": "W1" + strings.ToUpper(name)}
	for k, v := range insurance {
		covered[k] = v
	}
	id := cc.enroll(object{
		"last_name": name, "icd10_codes": []string{"I10", "E11.9"}, "primary_provider_id": cc.provider.Number(), "insurance": covered,
		"address": object{"line1": "1 Main St", "city": "Troy", "state": "NY", "zip": "12180"},
	})
	cc.consent(id)
	cc.request(authz.Provider, "POST", "/patients/"+id+"/orders/", object{"kind": "rpm_order", "dated": "2025-12-01"}).want(201)
	for ; minutes > 0; minutes -= 20 {
		cc.logCall(id, time.Date(2026, 1, 2, 14, 0, 0, 0, time.UTC).Add(time.Duration(cc.talked)*20*time.Minute).Format(time.RFC3339), min(minutes, 20))
		cc.talked++
	}
	return id
}

// reviewed runs the month's billing, reviews the entries, and returns them by patient and code.
func (cc *claimsClinic) reviewed() map[string]string {
	cc.t.Helper()
	cc.request(authz.Admin, "POST", "/billing/run/", object{"job": "time"}).want(200)
	entries := map[string]string{}
	for _, e := range cc.request(authz.Admin, "GET", "/billing/entries/?status=pending&page_size=100", nil).want(200).results() {
		id := e["id"].(string)
		cc.request(authz.DataMonitor, "POST", "/billing/entries/"+id+"/review/", nil).want(200)
		entries[e["patient_id"].(string)+" "+e["cpt_code"].(string)] = id
	}
	return entries
}

func (cc *claimsClinic) send(ids ...string) (batch reply, file payer.Submission) {
	cc.t.Helper()
	batch = cc.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": ids}).want(201)
	raw := cc.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/file/"), nil).want(200).body
	file, err := payer.Read837P([]byte(raw))
	if err != nil {
		cc.t.Fatal(err)
	}
	return batch, file
}

func (cc *claimsClinic) upload(file []byte) reply {
	cc.t.Helper()
	return cc.request(authz.DataMonitor, "POST", "/billing/claim-responses/", string(file), "Content-Type", "application/edi-x12")
}

func (cc *claimsClinic) entry(id string) reply {
	cc.t.Helper()
	return cc.request(authz.Admin, "GET", "/billing/entries/"+id+"/", nil).want(200)
}

func (cc *claimsClinic) claimOf(entry string, file payer.Submission) string {
	cc.t.Helper()
	control, _ := cc.entry(entry).at("claim_control_number").(string)
	if !slices.ContainsFunc(file.Claims, func(c payer.Claim) bool { return c.ControlNumber == control }) {
		cc.t.Fatalf("entry %s is on claim %q, which is not in the file", entry, control)
	}
	return control
}

// A day's claims are sent and the payer's answers are applied: each line reaches its state once, even if a file is
// uploaded again.
func TestClaimRoundTrip(t *testing.T) {
	h := newClaimsClinic(t)
	names := []string{"Paid", "Partly", "Denied", "Sentback", "Mixed"}
	ids := map[string]string{}
	for _, name := range names {
		ids[name] = h.insured(name, 40, nil)
	}
	ids["Spouse"] = h.insured("Spouse", 20, object{
		"relationship": "spouse", "subscriber": object{"first_name": "William", "last_name": "King", "date_of_birth": "1950-02-28", "gender": "male"},
	})
	entries := h.reviewed()
	all := make([]string, 0, len(entries))
	for _, id := range entries {
		all = append(all, id)
	}
	batch, file := h.send(all...)
	batch.wantAt(object{"claims": 6.0, "lines": 11.0, "usage": "T", "status": "created", "total_charge": 479.67})
	if len(file.Claims) != 6 {
		t.Fatalf("the file has %d claims", len(file.Claims))
	}
	number := batch.at("interchange_control_number")
	first := func(name string) string { return entries[ids[name]+" 99457"] }
	second := func(name string) string { return entries[ids[name]+" 99458"] }
	h.entry(first("Paid")).wantAt(object{"lifecycle_status": "submitted", "submission_reference": number, "claim_control_number": h.entry(second("Paid")).at("claim_control_number")})
	h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": all}).want(400, "invalid_state") // already submitted

	syntax := h.payer.Write999(file)
	h.upload(syntax).want(200).wantAt(object{"type": "999", "applied": 11.0, "unmatched": 0.0, "repeated": false})
	h.upload(syntax).want(200).wantAt(object{"applied": 0.0, "repeated": true})
	answered := func(sentBack, paid, denied, open float64) {
		t.Helper()
		want := object{"sent_back": sentBack, "paid": paid, "denied": denied, "voided": 0.0, "sent_again": 0.0, "open": open}
		one := h.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/"), nil).want(200).at("answers")
		listed := h.request(authz.Admin, "GET", "/billing/claim-batches/", nil).want(200).results()[0]["answers"]
		if fmt.Sprint(one) != fmt.Sprint(want) || fmt.Sprint(listed) != fmt.Sprint(want) {
			t.Errorf("the answers are %v, in the list %v, want %v", one, listed, want)
		}
	}
	answered(0, 0, 0, 11)
	h.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/"), nil).want(200).wantAt(object{"status": "accepted"})

	h.upload(h.payer.Write277CA(file, map[string]payer.Rejection{h.claimOf(first("Sentback"), file): {Category: "A7", Code: "562", Entity: "85"}})).want(200)
	for _, id := range []string{first("Sentback"), second("Sentback")} {
		h.entry(id).wantAt(object{"lifecycle_status": "reviewed", "rejection.source": "277CA", "submitted_at": nil})
		if text := h.entry(id).body; !strings.Contains(text, "rejected_277ca") || !strings.Contains(text, "A7:562") {
			t.Errorf("sent back with %s", text)
		}
	}
	h.entry(first("Paid")).wantAt(object{"lifecycle_status": "submitted"})
	answered(2, 0, 0, 9)

	decisions := map[string]payer.Decision{
		h.claimOf(first("Paid"), file): payer.Full(), h.claimOf(first("Partly"), file): payer.Partly(1000, 500, 200),
		h.claimOf(first("Denied"), file): payer.Deny("CO", "50", "N130"), h.claimOf(first("Sentback"), file): payer.NoDecision(),
	}
	payment := h.payer.Write835(file, decisions, x12.ProviderAdjustment{Provider: "1234567893", Year: "2026-12-31", Reason: "FB", Reference: "BALANCE7", Amount: 700})
	answer := h.upload(payment).want(200).wantAt(object{"type": "835", "applied": 9.0, "unmatched": 1.0})
	detail := h.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-responses/", answer.at("id"), "/"), nil).want(200).body
	if !strings.Contains(detail, `"segment":"PLB"`) || !strings.Contains(detail, "BALANCE7") || !strings.Contains(detail, `"amount":7.00`) {
		t.Errorf("left for a person: %s", detail)
	}
	check := func() {
		t.Helper()
		paid := h.entry(first("Paid"))
		paid.wantAt(object{"lifecycle_status": "paid", "paid_total": paid.at("charge"), "open": 0.0})
		h.entry(first("Partly")).wantAt(object{"lifecycle_status": "paid", "adjusted": 10.0, "patient_responsibility": 7.0, "open": 0.0})
		denied := h.entry(second("Denied"))
		denied.wantAt(object{"lifecycle_status": "denied", "denial.code": "CO-50", "paid_total": 0.0})
		if !strings.Contains(denied.body, "N130") {
			t.Errorf("denied with %s", denied.body)
		}
		h.entry(first("Spouse")).wantAt(object{"lifecycle_status": "paid"})
		answered(2, 7, 2, 0)
	}
	check()
	h.upload(payment).want(200).wantAt(object{"repeated": true, "applied": 0.0})
	h.upload([]byte(strings.ReplaceAll(string(payment), "~", "~\n"))).want(200).wantAt(object{"repeated": false, "applied": 0.0}) // the same file with line breaks
	check()
}

// A rejected claim is resent as an original, a denied line as a replacement of its whole claim, and a withdrawn claim as
// a void.
func TestClaimsResent(t *testing.T) {
	h := newClaimsClinic(t)
	a, b := h.insured("Ada", 40, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	a1, a2, b1 := entries[a+" 99457"], entries[a+" 99458"], entries[b+" 99457"]
	_, file := h.send(a1, a2, b1)
	old := h.claimOf(a1, file)

	h.upload(h.payer.Write999(file, payer.Fault{Claim: old, Element: 2, Code: "7"})).want(200).wantAt(object{"applied": 3.0})
	h.entry(b1).wantAt(object{"lifecycle_status": "reviewed", "rejection.source": "999"})
	_, file = h.send(a1, a2, b1)
	if now := h.claimOf(a1, file); now == old || file.Claims[0].Frequency != "1" {
		t.Errorf("sent again as %s, frequency %s", now, file.Claims[0].Frequency)
	}
	h.entry(b1).wantAt(object{"lifecycle_status": "submitted", "rejection": nil})
	claim := h.claimOf(a1, file)
	h.upload(h.payer.Write835(file, map[string]payer.Decision{claim: payer.Deny("CO", "16"), h.claimOf(b1, file): payer.NoDecision()})).want(200).wantAt(object{"applied": 2.0})
	h.upload(h.payer.Write277CA(file, nil)).want(200)

	h.request(authz.DataMonitor, "POST", "/billing/entries/"+a1+"/resubmit/", object{"corrections": object{"icd10_codes": []string{"I10"}}}).want(200)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+b1+"/request-void/", object{"reason": "Wrong patient"}).want(200)
	_, file = h.send(a1, b1)
	for _, c := range file.Claims {
		if c.ControlNumber == h.claimOf(a1, file) && (c.Frequency != "7" || len(c.Lines) != 1 || c.PayerControlNumber == "") {
			t.Errorf("replaced as %+v", c)
		}
		if c.ControlNumber == h.claimOf(b1, file) && c.Frequency != "8" {
			t.Errorf("voided as %+v", c)
		}
	}
	full := payer.Full()
	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(a1, file): full, h.claimOf(b1, file): payer.NoDecision()})).want(200)
	h.entry(a1).wantAt(object{"lifecycle_status": "paid", "resubmission_count": 1.0})
	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(a1, file): payer.Reverse(full), h.claimOf(b1, file): payer.NoDecision()})).want(200).wantAt(object{"applied": 1.0})
	h.entry(a1).wantAt(object{"lifecycle_status": "submitted", "paid_total": 0.0})
	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(a1, file): payer.Partly(500, 0, 0), h.claimOf(b1, file): payer.NoDecision()})).want(200)
	h.entry(a1).wantAt(object{"lifecycle_status": "paid", "adjusted": 5.0})
}

// When one line of a claim is voided, the other lines are sent again on a replacement.
func TestVoidOfPartOfAClaim(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 40, nil)
	entries := h.reviewed()
	first, next := entries[id+" 99457"], entries[id+" 99458"]
	_, sent := h.send(first, next)
	h.upload(h.payer.Write277CA(sent, nil)).want(200)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+next+"/request-void/", object{"reason": "One call was another patient's"}).want(200)
	batch, file := h.send(next)
	if len(file.Claims) != 1 || file.Claims[0].Frequency != "7" || len(file.Claims[0].Lines) != 1 || file.Claims[0].Lines[0].Charge != file.Claims[0].Charge {
		t.Fatalf("sent %+v", file.Claims)
	}
	text := h.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/"), nil).want(200).body
	if strings.Count(text, `"carried_by_replacement":true`) != 1 {
		t.Errorf("the batch is %s", text)
	}
	h.entry(first).wantAt(object{"lifecycle_status": "submitted", "claim_control_number": file.Claims[0].ControlNumber})
	h.entry(next).wantAt(object{"lifecycle_status": "void_requested"})
}

// A batch has all of its lines or is refused, and a payer's file is applied as a whole or refused with the position of
// the error.
func TestClaimFilesRefused(t *testing.T) {
	h := newClaimsClinic(t)
	good, bare := h.insured("Ada", 20, nil), h.insured("Bea", 20, object{"member_id": nil})
	entries := h.reviewed()
	one, two := entries[good+" 99457"], entries[bare+" 99457"]
	refused := h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{one, two, unknownPatient}}).want(400, "invalid_state")
	if !strings.Contains(refused.body, "missing_member_id") || !strings.Contains(refused.body, two) || strings.Contains(refused.body, one) || !strings.Contains(refused.body, "not_found") {
		t.Errorf("refused with %s", refused.body)
	}
	h.entry(one).wantAt(object{"lifecycle_status": "reviewed", "claim_control_number": nil})
	h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{}}).wantFields("entry_ids")
	h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{one, one, "x"}}).wantFields("entry_ids.1", "entry_ids.2")
	_, file := h.send(one)
	syntax := string(h.payer.Write999(file))
	for name, wrong := range map[string]string{
		"empty": " ", "no X12": "hello", "for another receiver": strings.Replace(syntax, "SUB1 ", "SUB2 ", 1),
		"a wrong count": strings.Replace(syntax, "GE*1*", "GE*2*", 1), "another version": strings.Replace(syntax, "*00501*", "*00401*", 1),
	} {
		answer := h.upload([]byte(wrong)).want(400, "invalid_x12")
		if answer.at("segment") == nil || answer.at("position") == nil {
			t.Errorf("%s: %s", name, answer.body)
		}
	}
	if list := h.request(authz.Admin, "GET", "/billing/claim-responses/", nil).want(200).results(); len(list) != 0 {
		t.Errorf("kept %v", list)
	}
	other := &payer.Payer{ID: "HOUSE1", Name: "CLEARING HOUSE", At: h.now}
	foreign := file
	foreign.Claims = slices.Clone(file.Claims)
	foreign.Claims[0].ControlNumber = "V999999999C00001"
	h.upload(other.Write835(foreign, nil)).want(200).wantAt(object{"applied": 0.0, "unmatched": 1.0})
	h.entry(one).wantAt(object{"lifecycle_status": "submitted"})
	h.wantRoles("GET", "/billing/claim-batches/", nil, authz.Admin, authz.DataMonitor)
}
