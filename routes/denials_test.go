package routes_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A denial states until when the payer takes a corrected claim and an appeal, by the payer's limits or those of its filing code.
func TestDenialDeadlines(t *testing.T) {
	h := newClaimsClinic(t)
	entry, _ := h.decided("Ada", payer.Deny("CO", "50"))
	denied := h.entry(entry)
	day := func(path string, days int) string {
		t.Helper()
		return dayAfter(t, denied.at(path).(string), days)
	}
	denied.wantAt(object{"denial.next_step": "appeal", "denial.refile_by": nil, "denial.appeal_by": nil})
	h.setPayer(object{"filing_limit_days": 90, "appeal_limit_days": 60}).wantAt(object{"filing_limit_days": 90.0, "appeal_limit_days": 60.0})
	h.entry(entry).wantAt(object{"denial.refile_by": day("service_date", 90), "denial.appeal_by": day("denial.date", 60)})
	h.setPayer(object{"filing_limit_days": nil, "appeal_limit_days": nil, "claim_filing_code": "MB"}).wantAt(object{"filing_limit_days": nil})
	h.entry(entry).wantAt(object{"denial.refile_by": day("service_date", 365), "denial.appeal_by": day("denial.date", 125)})
	path := fmt.Sprint("/billing/payers/", h.insurer, "/")
	for _, days := range []any{0, -1, 1826, 1.5, "90"} {
		h.request(authz.Admin, "PATCH", path, object{"filing_limit_days": days, "appeal_limit_days": days}).wantFields("filing_limit_days", "appeal_limit_days")
	}
}

// A claim is found by each of its numbers and by the patient, and by nothing else.
func TestEntrySearch(t *testing.T) {
	h := newClaimsClinic(t)
	entry, first := h.decided("Quillbrandt", payer.Deny("CO", "16"))
	h.decided("Other", payer.Full())
	h.moveEntry(entry, "resubmit", nil).want(200)
	_, again := h.send(entry)
	stored := h.entry(entry)
	id := stored.at("patient_id").(string)
	mrn := h.request(authz.Admin, "GET", "/patients/"+id+"/", nil).want(200).at("mrn").(string)
	h.request(authz.Admin, "POST", "/patients/"+id+"/archive/", object{"reason": "moved", "confirm": true}).want(200)
	find := func(words string) (found []string) {
		t.Helper()
		for _, e := range h.request(authz.DataMonitor, "GET", "/billing/entries/?search="+url.QueryEscape(words), nil).want(200).results() {
			found = append(found, e["id"].(string))
		}
		return found
	}
	for _, words := range []string{
		stored.at("claim_id").(string), first.ControlNumber, again.Claims[0].ControlNumber, first.Number(), mrn, "quillbrandt", "QUILL", " Quillbrandt ",
	} {
		if found := find(words); len(found) != 1 || found[0] != entry {
			t.Errorf("%q finds %v, want %s", words, found, entry)
		}
	}
	for _, words := range []string{",", "Nobody", "%", "CLM-"} {
		if found := find(words); len(found) != 0 {
			t.Errorf("%q finds %v", words, found)
		}
	}
	h.request(authz.DataMonitor, "GET", "/billing/entries/?search="+url.QueryEscape(string(make([]byte, 101))), nil).want(400)
}

func dayAfter(t *testing.T, date string, days int) string {
	t.Helper()
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		t.Fatal(err)
	}
	return day.AddDate(0, 0, days).Format(time.DateOnly)
}
