package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A batch accepts every entry that preflight accepts, and both name the same problems.
func TestPreflightMatchesBatch(t *testing.T) {
	h := newClaimsClinic(t)
	odd, abroad := h.insured("Лавлейс", 20, object{"member_id": "W1X"}), h.insured("Ada", 20, nil)
	h.request(authz.Admin, "PUT", "/patients/"+abroad+"/", patientBody(object{"last_name": "Ada", "address": object{"line1": "Karl Johans gate 1", "city": "Oslo", "zip": "0154", "country": "NO"}})).want(200)
	h.request(authz.Admin, "POST", "/billing/run/", object{"job": "time"}).want(200)
	for _, e := range h.request(authz.Admin, "GET", "/billing/entries/?status=pending", nil).want(200).results() {
		h.request(authz.DataMonitor, "POST", fmt.Sprint("/billing/entries/", e["id"], "/review/"), nil).want(200)
		found := h.request(authz.DataMonitor, "GET", fmt.Sprint("/billing/entries/", e["id"], "/preflight/"), nil).want(200)
		sent := h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []any{e["id"]}})
		if ok := e["patient_id"] == abroad; found.at("ok") != ok || ok != (sent.status == 201) {
			t.Errorf("preflight answers %s, the batch %d %s", found.body, sent.status, sent.body)
		}
		if e["patient_id"] == odd && !strings.Contains(found.body, `"not_representable"`) {
			t.Errorf("found %s", found.body)
		}
	}
}

// An add-on code is sent with its primary code or after it: neither while the primary waits nor after it was denied.
func TestAddOnNeedsPrimaryCode(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 40, nil)
	entries := h.reviewed()
	first, next := entries[id+" 99457"], entries[id+" 99458"]
	alone := func(code int) reply {
		t.Helper()
		return h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{next}}).want(code)
	}
	if r := alone(400); !strings.Contains(r.body, "missing_primary_code") || !strings.Contains(r.body, next) {
		t.Errorf("sent alone: %s", r.body)
	}
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+first+"/return/", object{"reason": "Look again"}).want(200)
	if r := h.request(authz.DataMonitor, "POST", "/billing/entries/"+next+"/submit/", nil).want(400, "invalid_state"); !strings.Contains(r.body, "missing_primary_code") {
		t.Errorf("submitted alone: %s", r.body)
	}
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+first+"/review/", nil).want(200)
	_, file := h.send(first)
	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(first, file): payer.Deny("CO", "50")})).want(200)
	alone(400)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+next+"/submit/", nil).want(400, "invalid_state")
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+first+"/resubmit/", nil).want(200)
	h.send(first)
	alone(201)
}

// A replacement names the latest claim number and has every line that stands, including lines last sent on other claims.
func TestReplacementHasAllStandingLines(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 40, nil)
	entries := h.reviewed()
	first, next := entries[id+" 99457"], entries[id+" 99458"]
	_, file := h.send(first, next)
	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(first, file): payer.Deny("CO", "16")})).want(200)
	again := func(entry string, decision payer.Decision) payer.Claim {
		t.Helper()
		h.request(authz.DataMonitor, "POST", "/billing/entries/"+entry+"/resubmit/", object{"corrections": object{"icd10_codes": []string{"I10"}}}).want(200)
		_, file := h.send(entry)
		h.upload(h.payer.Write835(file, map[string]payer.Decision{file.Claims[0].ControlNumber: decision})).want(200)
		return file.Claims[0]
	}
	second := again(first, payer.Full())
	if second.Frequency != "7" || len(second.Lines) != 1 {
		t.Fatalf("the first is resent as %+v", second)
	}
	third := again(next, payer.FullExcept("99457")) // denied on the first claim, which the second has replaced
	codes := func(c payer.Claim) (list []string) {
		for _, l := range c.Lines {
			list = append(list, l.Procedure[1])
		}
		slices.Sort(list)
		return list
	}
	if third.Frequency != "7" || !slices.Equal(codes(third), []string{"99457", "99458"}) || third.PayerControlNumber != second.Number() {
		t.Errorf("the second line is resent as %v for %s, the claim number is %s", codes(third), third.PayerControlNumber, second.Number())
	}
	h.entry(first).wantAt(object{"lifecycle_status": "paid", "claim_control_number": third.ControlNumber})
	h.entry(next).wantAt(object{"lifecycle_status": "paid", "claim_control_number": third.ControlNumber})
}

// Lines that were denied together and resent on separate claims become one claim when they are resent together.
func TestReplacementsMergeIntoOneClaim(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 40, nil)
	entries := h.reviewed()
	first, next := entries[id+" 99457"], entries[id+" 99458"]
	_, file := h.send(first, next)
	deny := func(file payer.Submission) {
		t.Helper()
		h.upload(h.payer.Write835(file, map[string]payer.Decision{file.Claims[0].ControlNumber: payer.Deny("CO", "16")})).want(200)
	}
	resubmit := func(entry string) {
		t.Helper()
		h.request(authz.DataMonitor, "POST", "/billing/entries/"+entry+"/resubmit/", nil).want(200)
	}
	deny(file)
	resubmit(first)
	_, file = h.send(first)
	deny(file)
	second := file.Claims[0]
	resubmit(first)
	resubmit(next)
	_, file = h.send(first, next)
	if len(file.Claims) != 1 || len(file.Claims[0].Lines) != 2 || file.Claims[0].PayerControlNumber != second.Number() {
		t.Errorf("sent %+v, the claim is known as %s", file.Claims, second.Number())
	}
}

// Lines sent in a test file are sent as originals once claims go to production, and not before.
func TestTestFilesAreResentInProduction(t *testing.T) {
	h := newClaimsClinic(t)
	a, b := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	one, denied := entries[a+" 99457"], entries[b+" 99457"]
	batch, file := h.send(one, denied)
	tried := h.claimOf(one, file)
	h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{one}}).want(400, "invalid_state")
	h.upload(h.payer.Write835(file, map[string]payer.Decision{tried: payer.NoDecision(), h.claimOf(denied, file): payer.Deny("CO", "16")})).want(200)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+denied+"/resubmit/", nil).want(200)

	h.money.Claims.Submitter.Usage, h.payer.Usage = "P", "P"
	if waiting, err := collections.EntriesToSubmit(h.app, "2026-01-01", "2026-01-31", "P"); err != nil || len(waiting) != 2 {
		t.Errorf("waiting are %v, %v", waiting, err)
	}
	real, file := h.send(one, denied)
	real.wantAt(object{"usage": "P", "lines": 2.0})
	for _, c := range file.Claims {
		if c.Frequency != "1" || c.PayerControlNumber != "" {
			t.Errorf("sent as %+v", c)
		}
	}
	h.entry(one).wantAt(object{"lifecycle_status": "submitted", "submission_reference": real.at("interchange_control_number")})
	if now := h.claimOf(one, file); now == tried || batch.at("id") == real.at("id") {
		t.Errorf("sent again as %s", now)
	}
	h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{one}}).want(400, "invalid_state")
	h.upload(h.payer.Write835(file, nil)).want(200)
	h.entry(one).wantAt(object{"lifecycle_status": "paid"})
	h.entry(denied).wantAt(object{"lifecycle_status": "paid"})
}

// A claim that was sent only as a test cannot be voided.
func TestTestClaimCannotBeVoided(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 20, nil)
	entry := h.reviewed()[id+" 99457"]
	h.send(entry)
	h.money.Claims.Submitter.Usage = "P"
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+entry+"/request-void/", nil).want(200)
	if r := h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{entry}}).want(400, "invalid_state"); !strings.Contains(r.body, "test_usage") {
		t.Errorf("refused with %s", r.body)
	}
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+entry+"/void/", object{"reason": "Never sent"}).want(200)
}
