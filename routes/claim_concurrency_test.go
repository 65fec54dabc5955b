package routes_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A month's batch leaves out entries submitted by other means, and a batch refuses an add-on code while its primary code
// is being voided.
func TestEntriesLeftOutOfBatch(t *testing.T) {
	h := newClaimsClinic(t)
	left, sent, undone := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil), h.insured("Cleo", 40, nil)
	entries := h.reviewed()
	submit := func(id string) {
		h.request(authz.DataMonitor, "POST", "/billing/entries/"+id+"/submit/", nil).want(200)
	}
	byPortal, first, next := entries[left+" 99457"], entries[undone+" 99457"], entries[undone+" 99458"]
	submit(byPortal)
	if waiting, err := collections.EntriesToSubmit(h.app, "2026-01-01", "2026-01-31", "T"); err != nil || strings.Contains(strings.Join(waiting, " "), byPortal) || len(waiting) != 3 {
		t.Errorf("waiting are %v, %v", waiting, err)
	}
	h.send(byPortal, entries[sent+" 99457"]) // but naming the entry sends it

	submit(first)
	submit(next)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+first+"/request-void/", nil).want(200)
	refused := h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{next}}).want(400, "invalid_state")
	if !strings.Contains(refused.body, "evidence_changed") {
		t.Errorf("refused with %s", refused.body)
	}
}

// An entry whose facts fail at the last moment is named in the refusal; the other entries keep their state.
func TestBatchNamesFailingEntry(t *testing.T) {
	h := newClaimsClinic(t)
	good, bad := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	one, two := entries[good+" 99457"], entries[bad+" 99457"]
	if _, err := h.app.DB().NewQuery("UPDATE consents SET revoked_at = '2025-12-01T00:00:00.000000Z' WHERE patient = '" + bad + "'").Execute(); err != nil {
		t.Fatal(err)
	}
	refused := h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{one, two}}).want(400, "invalid_state")
	if !strings.Contains(refused.body, two) || !strings.Contains(refused.body, "missing_consent") || strings.Contains(refused.body, one) {
		t.Errorf("refused with %s", refused.body)
	}
	h.entry(one).wantAt(object{"lifecycle_status": "reviewed", "claim_control_number": nil})
}

// A decision on a replaced claim does not affect its replacement, and a check is booked once, manually or from a file.
func TestLateDecisionKeepsReplacement(t *testing.T) {
	h := newClaimsClinic(t)
	a, b := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	again, typed := entries[a+" 99457"], entries[b+" 99457"]
	_, old := h.send(again, typed)
	claim, other := h.claimOf(again, old), h.claimOf(typed, old)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+again+"/deny/", object{"code": "CO-16", "description": "By portal"}).want(200)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+again+"/resubmit/", object{
		"payer_control_number": "BY-PORTAL", "corrections": object{"icd10_codes": []string{"I10"}},
	}).want(200)
	h.send(again)
	answer := h.upload(h.payer.Write835(old, map[string]payer.Decision{claim: payer.Deny("CO", "50"), other: payer.NoDecision()})).want(200)
	answer.wantAt(object{"applied": 0.0, "unmatched": 1.0, "finished_at": "2026-01-15T13:45:00Z"})
	h.entry(again).wantAt(object{"lifecycle_status": "submitted"})

	paid := h.payer.Write835(old, map[string]payer.Decision{claim: payer.NoDecision()})
	trace := strings.Split(strings.Split(string(paid), "TRN*1*")[1], "*")[0]
	charge := h.entry(typed).at("charge")
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+typed+"/pay/", object{"amount": charge, "payment_date": "2026-01-15", "reference": trace}).want(200)
	h.upload(paid).want(200).wantAt(object{"applied": 0.0, "unmatched": 1.0})
	h.entry(typed).wantAt(object{"lifecycle_status": "paid", "paid_total": charge})
}

// Two concurrent batches with the same lines put them in exactly one file.
func TestConcurrentBatchesOfSameLines(t *testing.T) {
	for _, usage := range []string{"T", "P"} {
		h := newClaimsClinic(t)
		a, b := h.insured("Ada", 40, nil), h.insured("Bea", 20, nil)
		entries := h.reviewed()
		ids := []string{entries[a+" 99457"], entries[a+" 99458"], entries[b+" 99457"]}
		if usage == "P" { // sent as tests before, so they are already submitted
			h.send(ids...)
			h.money.Claims.Submitter.Usage = "P"
		}
		answers := make(chan int)
		for range 6 {
			go func() {
				answers <- h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": ids}).status
			}()
		}
		statuses := map[int]int{}
		for range 6 {
			statuses[<-answers]++
		}
		if statuses[201] != 1 || statuses[400] != 5 {
			t.Errorf("usage %s: answered %v", usage, statuses)
		}
		sent := 0
		for _, row := range h.request(authz.Admin, "GET", "/billing/claim-batches/?page_size=100", nil).want(200).results() {
			if row["usage"] == usage {
				sent++
			}
		}
		if sent != 1 {
			t.Errorf("usage %s: in %d files", usage, sent)
		}
	}
}

// A payer's file that is uploaded several times at once is applied once; the other callers receive the same result.
func TestConcurrentUploadsOfSameAnswer(t *testing.T) {
	h := newClaimsClinic(t)
	a, b := h.insured("Ada", 40, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	_, file := h.send(entries[a+" 99457"], entries[a+" 99458"], entries[b+" 99457"])
	paid := h.payer.Write835(file, nil)
	answers := make(chan reply)
	for range 6 {
		go func() { answers <- h.upload(paid) }()
	}
	applied, repeated := 0.0, 0
	for range 6 {
		answer := (<-answers).want(200)
		applied += answer.at("applied").(float64)
		if answer.at("repeated") == true {
			repeated++
		}
	}
	if applied != 3 || repeated != 5 {
		t.Errorf("%v lines applied, %d times repeated", applied, repeated)
	}
	for _, entry := range entries {
		r := h.entry(entry)
		r.wantAt(object{"lifecycle_status": "paid", "paid_total": r.at("charge")})
	}
}
