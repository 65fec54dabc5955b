package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
)

// spentTime logs five minutes of a call and twenty of care management on two days of a month, at times of its own.
func (cc *claimsClinic) spentTime(patient, month string) {
	cc.t.Helper()
	start := func(day string) string {
		at, err := time.Parse(time.DateOnly, month+day)
		if err != nil {
			cc.t.Fatal(err)
		}
		return at.Add(14*time.Hour + time.Duration(cc.talked)*30*time.Minute).Format(time.RFC3339)
	}
	cc.logCall(patient, start("-20"), 5)
	cc.careFor(patient, start("-21")).want(201)
	cc.talked++
}

func (cc *claimsClinic) careFor(patient, start string) reply {
	cc.t.Helper()
	return cc.request(authz.Nurse, "POST", "/time-entries/", object{
		"patient_id": patient, "category": "care_management", "started_at": start, "duration_seconds": 1200, "notes": "Adjusted the plan",
	})
}

// A payer's rule of minutes comes before the practice's wherever time is counted; without one, and without insurance, the practice's holds. The
// primary insurance decides.
func TestPayersRuleOfMinutes(t *testing.T) {
	h := newClaimsClinic(t)
	beta := h.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Beta", "payer_id": "BE", "edi_payer_id": "60055", "claim_filing_code": "CI"}).want(201).at("id")
	h.setPayer(object{"minutes_rule": "care_management"})
	second := object{"payer_id": h.insurer, "member_id": "S1", "relationship": "self"}
	patients := []string{
		h.insured("Acme", 0, nil), h.insured("Beta", 0, object{"payer_id": beta}), h.insured("Both", 0, object{"payer_id": beta, "secondary": second}),
		h.insured("None", 0, object{"payer_id": nil, "member_id": nil, "self_pay": true}),
	}
	for _, id := range patients {
		h.spentTime(id, "2025-12")
	}
	counted := func(what string, id string, want float64) {
		t.Helper()
		sum := h.request(authz.Admin, "GET", "/time-entries/summary/?month=2025-12&patient_id="+id, nil).want(200).results()[0]["counted_minutes"]
		explained := any(nil)
		for _, code := range h.request(authz.Admin, "GET", "/billing/explain/"+id+"/?month=2025-12", nil).want(200).at("codes").([]any) {
			if code.(object)["cpt_code"] == "99457" {
				explained = code.(object)["minutes"]
			}
		}
		if sum != want || explained != want {
			t.Errorf("%s: %v minutes are counted and %v explained, want %v", what, sum, explained, want)
		}
	}
	for i, want := range []float64{25, 5, 5, 5} {
		counted(fmt.Sprint("patient ", i), patients[i], want)
	}
	wantRules := func(what string, minutes, patients [2]float64) {
		t.Helper()
		for i, rule := range h.request(authz.Admin, "GET", "/billing/minutes-rule/?month=2025-12", nil).want(200).at("rules").([]any) {
			wantMembers(t, what, rule.(object), object{"minutes": minutes[i], "patients": patients[i]})
		}
	}
	wantRules("one payer counts care management", [2]float64{40, 100}, [2]float64{1, 4})
	rows := h.request(authz.Admin, "GET", "/billing/reports/unbilled/", nil).want(200).results()
	if len(rows) != 1 || rows[0]["patient_id"] != patients[0] || rows[0]["cpt_code"] != "99457" || rows[0]["minutes"] != 20.0 {
		t.Errorf("unbilled: %v", rows)
	}
	entries := h.reviewed()
	if entry := entries[patients[0]+" 99457"]; len(entries) != 1 || entry == "" {
		t.Fatalf("made %v", entries)
	}

	byHand := h.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
		"patient_id": patients[1], "cpt_code": "99457", "service_date": "2025-12-21", "duration_minutes": 20,
	}).want(201).at("id").(string)
	h.move(byHand, "review", nil).want(400, "invalid_state")
	h.request(authz.Admin, "PATCH", fmt.Sprint("/billing/payers/", beta, "/"), object{"minutes_rule": "care_management"}).want(200)
	h.move(byHand, "review", nil).want(200)
	wantRules("two payers count it", [2]float64{80, 100}, [2]float64{3, 4})

	// an entry keeps the rule it was made under, after a change of the payer or of its rule
	h.request(authz.Admin, "PATCH", fmt.Sprint("/billing/payers/", beta, "/"), object{"minutes_rule": nil}).want(200)
	h.setPayer(object{"minutes_rule": "interactive"})
	counted("the payer's rule changed", patients[0], 5)
	h.move(entries[patients[0]+" 99457"], "submit", nil).want(200)
	h.move(byHand, "submit", nil).want(200)
	h.setPayer(object{"minutes_rule": "care_management"})
	counted("changed again", patients[0], 25)
	h.request(authz.Admin, "PATCH", "/patients/"+patients[0]+"/", object{"insurance": object{"payer_id": beta, "member_id": "W2"}}).want(200)
	counted("another payer since", patients[0], 5)
	if _, marked, err := h.money.RecheckAll(t.Context(), h.app, h.now); err != nil || marked != 0 {
		t.Errorf("%d sent entries are marked, %v", marked, err)
	}
	h.setPayer(object{"minutes_rule": "interactive"})

	h.money.TimeRule = billing.WithCareManagement
	h.request(authz.Admin, "PATCH", "/patients/"+patients[2]+"/", object{"insurance": object{"payer_id": h.insurer, "member_id": "W3", "secondary": nil}}).want(200)
	counted("the practice's rule", patients[1], 25)
	counted("the payer's stricter rule", patients[2], 5)
	counted("no insurance", patients[3], 25)
}

// Care management overlaps other time only where it counts for the patient.
func TestPayersRuleAndOverlap(t *testing.T) {
	h := newClaimsClinic(t)
	h.setPayer(object{"minutes_rule": "care_management"})
	counts, doesNot := h.insured("Acme", 0, nil), h.insured("None", 0, object{"payer_id": nil, "member_id": nil, "self_pay": true})
	h.logCall(doesNot, "2026-01-10T14:00:00Z", 10)
	h.careFor(doesNot, "2026-01-10T14:05:00Z").want(201)
	h.careFor(counts, "2026-01-10T14:05:00Z").want(400, "overlapping_time")
	h.careFor(counts, "2026-01-10T14:10:00Z").want(201)
	h.careFor(counts, "2026-01-10T14:20:00Z").want(400, "overlapping_time")
}

// Monitoring must be ordered on or before the first billed day: the first day with data, or the day of the first of the minutes.
func TestOrderBeforeFirstBilledDay(t *testing.T) {
	for dated, want := range map[string][3]bool{ // whether 99454, 99457 and 99458 lack an order
		"2025-12-15": {}, "2025-12-16": {true, false, false}, "2026-01-05": {true, false, false}, "2026-01-06": {true, true, false},
		"2026-01-08": {true, true, false}, "2026-01-09": {true, true, true}, "2026-01-13": {true, true, true},
	} {
		c := newClinic(t)
		patient := c.billablePatient()
		c.storeDeviceDays(patient, "D-1", c.now.AddDate(0, 0, -31), 16)
		c.logCall(patient, "2026-01-05T15:00:00Z", 20)
		c.logCall(patient, "2026-01-08T15:00:00Z", 20)
		c.request(authz.Provider, "POST", "/patients/"+patient+"/orders/", object{"kind": "rpm_order", "dated": dated}).want(201)
		c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "all"}).want(200)
		entries := c.request(authz.Admin, "GET", "/billing/entries/?status=pending", nil).want(200).results()
		byCode := map[string]string{}
		for _, entry := range entries {
			byCode[entry["cpt_code"].(string)] = entry["id"].(string)
		}
		for i, code := range []string{"99454", "99457", "99458"} {
			id := byCode[code]
			warned := contains(c.move(id, "review", nil).want(200).at("warnings"), "missing_order")
			preflight := false
			for _, w := range c.request(authz.Admin, "GET", "/billing/entries/"+id+"/preflight/", nil).want(200).at("warnings").([]any) {
				preflight = preflight || w.(object)["code"] == "missing_order"
			}
			if warned != want[i] || preflight != want[i] {
				t.Errorf("ordered on %s, %s: review warns %v, preflight %v, want %v", dated, code, warned, preflight, want[i])
			}
		}
	}
}

// An entry made by hand is judged before its review as after it: by the first of its minutes or days with data, not by its date of service.
func TestOrderBeforeUnreviewedEntry(t *testing.T) {
	for dated, want := range map[string]bool{"2026-01-05": false, "2026-01-06": true, "2026-01-14": true} {
		c := newClinic(t)
		patient := c.billablePatient()
		c.logCall(patient, "2026-01-05T15:00:00Z", 20)
		c.request(authz.Provider, "POST", "/patients/"+patient+"/orders/", object{"kind": "rpm_order", "dated": dated}).want(201)
		id := c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
			"patient_id": patient, "cpt_code": "99457", "service_date": "2026-01-14", "duration_minutes": 20,
		}).want(201).at("id").(string)
		preflight := func() (isWarned bool) {
			for _, w := range c.request(authz.Admin, "GET", "/billing/entries/"+id+"/preflight/", nil).want(200).at("warnings").([]any) {
				isWarned = isWarned || w.(object)["code"] == "missing_order"
			}
			return isWarned
		}
		before := preflight()
		c.move(id, "review", nil).want(200)
		if after := preflight(); before != want || after != want {
			t.Errorf("ordered on %s: preflight warns %v before the review and %v after it, want %v", dated, before, after, want)
		}
	}
}

func contains(list any, text string) bool {
	for _, x := range list.([]any) {
		if x == text {
			return true
		}
	}
	return false
}
