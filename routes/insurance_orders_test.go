package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/routes"
)

// A patient's insurance keeps the policyholder and the order of payers as entered, and is replaced as a whole.
func TestInsuranceOfOtherPolicyholder(t *testing.T) {
	c := newClinic(t)
	payer := func(code string) any {
		return c.request(authz.Admin, "POST", "/billing/payers/", object{
			"name": "Payer " + code, "payer_id": code, "edi_payer_id": "60054", "claim_filing_code": "CI",
			"address": object{"line1": "PO Box 981106", "city": "El Paso", "state": "TX", "postal_code": "79998-1106"},
		}).want(201).at("id")
	}
	first, second := payer("A"), payer("B")
	insurance := object{
		"payer_id": first, "member_id": "W123", "group_number": "G-77 1", "relationship": "spouse",
		"subscriber": object{"first_name": "William", "last_name": "Markedking", "date_of_birth": "1950-02-28", "gender": "male"},
		"secondary":  object{"payer_id": second, "member_id": "1EG4TE5MK73", "relationship": "self"},
	}
	id := c.enroll(object{"insurance": insurance})
	path := "/patients/" + id + "/"
	c.request(authz.Admin, "GET", path, nil).want(200).wantAt(object{
		"insurance.payer_id": first, "insurance.member_id": "W123", "insurance.group_number": "G-77 1", "insurance.relationship": "spouse",
		"insurance.subscriber.last_name": "Markedking", "insurance.subscriber.date_of_birth": "1950-02-28", "insurance.subscriber.gender": "male",
		"insurance.secondary.payer_id": second, "insurance.secondary.member_id": "1EG4TE5MK73", "insurance.secondary.relationship": "self",
		"insurance.secondary.subscriber": nil,
	})
	c.request(authz.Admin, "PUT", path, patientBody(object{"last_name": "King"})).want(200).wantAt(object{"insurance.group_number": "G-77 1", "insurance.secondary.payer_id": second})
	c.request(authz.Admin, "PUT", path, patientBody(object{"insurance": object{"payer_id": first, "member_id": "W124"}})).want(200).wantAt(object{
		"insurance.member_id": "W124", "insurance.group_number": nil, "insurance.subscriber": nil, "insurance.secondary": nil,
	})
	for name, wrong := range map[string]object{
		"insurance.relationship":             {"relationship": "cousin"},
		"insurance.group_number":             {"group_number": "a*b"},
		"insurance.subscriber":               {"subscriber": 5},
		"insurance.subscriber.first_name":    {"subscriber": object{"last_name": "King"}},
		"insurance.subscriber.date_of_birth": {"subscriber": object{"first_name": "W", "last_name": "K", "date_of_birth": "2050-01-01"}},
		"insurance.subscriber.gender":        {"subscriber": object{"first_name": "W", "last_name": "K", "gender": "m"}},
		"insurance.secondary":                {"secondary": "x"},
		"insurance.secondary.relationship":   {"secondary": object{"relationship": "x"}},
		"insurance.secondary.payer_id":       {"secondary": object{"payer_id": 4711}},
	} {
		c.request(authz.Admin, "PUT", path, patientBody(object{"insurance": wrong})).wantFields(name)
	}
	var stored string
	if err := c.app.DB().NewQuery("SELECT insurance_details FROM patients WHERE id = '" + c.enroll(object{"insurance": insurance}) + "'").Row(&stored); err != nil || stored == "" || strings.Contains(stored, "Markedking") {
		t.Errorf("stored as %q %v", stored, err)
	}
}

// A change to a payer affects only the members that are sent; its code cannot change.
func TestPayersOfClaims(t *testing.T) {
	c := newClinic(t)
	id := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC"}).want(201).wantAt(object{
		"edi_payer_id": nil, "claim_filing_code": nil, "address": nil,
	}).at("id")
	c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Other", "payer_id": "OT"}).want(201)
	path := fmt.Sprintf("/billing/payers/%v/", id)
	c.request(authz.DataMonitor, "PATCH", path, object{"edi_payer_id": "60054", "claim_filing_code": "CI"}).want(200).wantAt(object{
		"name": "Acme", "payer_id": "AC", "is_active": true, "edi_payer_id": "60054", "claim_filing_code": "CI",
	})
	address := object{"line1": "1 Main St", "city": "Hartford", "state": "CT", "postal_code": "06103"}
	c.request(authz.Admin, "PATCH", path, object{"address": address, "is_active": false}).want(200).wantAt(object{"address.city": "Hartford", "address.line2": nil, "is_active": false, "edi_payer_id": "60054"})
	c.request(authz.Admin, "PATCH", path, object{"address": nil, "edi_payer_id": nil}).want(200).wantAt(object{"address": nil, "edi_payer_id": nil})
	c.request(authz.Admin, "PATCH", path, object{"payer_id": "ot"}).wantFields("payer_id")
	c.request(authz.Admin, "PATCH", path, object{"claim_filing_code": "mb", "edi_payer_id": "*", "address": object{"line1": "x", "city": "", "state": "Texas", "postal_code": "1"}}).
		wantFields("claim_filing_code", "edi_payer_id", "address.city", "address.state", "address.postal_code")
	c.request(authz.Admin, "PATCH", "/billing/payers/99/", object{"name": "x"}).want(404)
}

// Orders, care plans and visits are recorded with both dates and their author, and cannot be changed.
func TestOrders(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	path := "/patients/" + id + "/orders/"
	c.request(authz.Provider, "POST", path, object{"kind": "rpm_order", "dated": "2026-01-02", "text": "Markedpressure daily"}).want(201).wantAt(object{
		"kind": "rpm_order", "dated": "2026-01-02", "recorded_at": "2026-01-15T13:45:00Z", "author_id": float64(c.people[authz.Provider].Number()), "text": "Markedpressure daily",
	})
	c.request(authz.Nurse, "POST", path, object{"kind": "plan_of_care", "dated": "2026-01-15", "author_id": c.people[authz.Provider].Number()}).want(201).
		wantAt(object{"recorded_by": c.people[authz.Nurse].Email(), "text": nil})
	if all := c.request(authz.DataMonitor, "GET", path, nil).want(200).results(); len(all) != 2 || all[0]["kind"] != "plan_of_care" || all[1]["kind"] != "rpm_order" {
		t.Errorf("the list is %v", all)
	}
	if some := c.request(authz.DataMonitor, "GET", path+"?kind=rpm_order", nil).want(200).results(); len(some) != 1 {
		t.Errorf("one kind is %v", some)
	}
	c.request(authz.Nurse, "POST", path, object{"kind": "rpm_order", "dated": "2026-01-02"}).wantFields("author_id") // a nurse cannot have ordered it
	c.request(authz.Nurse, "POST", path, object{"kind": "x", "dated": "2026-01-16", "author_id": 0}).wantFields("kind", "dated", "author_id")
	c.request(authz.Nurse, "POST", path, object{}).wantFields("kind", "dated")
	c.request(authz.Provider, "POST", "/patients/"+unknownPatient+"/orders/", object{"kind": "rpm_order", "dated": "2026-01-02"}).want(404)
	c.wantRoles("POST", path, object{"kind": "rpm_order", "dated": "2026-01-02", "author_id": c.people[authz.Provider].Number()}, clinical...)
}

// Preflight names each missing item and where to correct it; submission is refused for the same reasons once claims are
// sent electronically.
func TestPreflightOfEntries(t *testing.T) {
	var money *billing.Engine
	c := newClinic(t, func(e *routes.Engines) { money = e.Billing })
	money.Claims.Submitter.PlaceOfService = "11"
	payer := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC"}).want(201).at("id")
	id := c.enroll(object{"icd10_codes": []string{"I10"}, "insurance": object{"payer_id": payer}})
	c.consent(id)
	entry := c.request(authz.Provider, "POST", "/billing/entries/manual-create/", object{
		"patient_id": id, "cpt_code": "99457", "service_date": "2026-01-14", "duration_minutes": 20,
	}).want(201).at("id").(string)
	path := "/billing/entries/" + entry + "/"
	found := c.request(authz.DataMonitor, "GET", path+"preflight/", nil).want(200).wantAt(object{"entry_id": entry, "ok": false})
	if text := fmt.Sprint(found.at("errors")); !strings.Contains(text, "missing_member_id") || !strings.Contains(text, "VIGIL_PRACTICE_NPI") || strings.Contains(text, "SUBMITTER") {
		t.Errorf("found %s", text)
	}
	if list := c.request(authz.Admin, "GET", "/billing/preflight/?month=2026-01", nil).want(200).results(); len(list) != 1 || list[0]["entry_id"] != entry {
		t.Errorf("the month is %v", list)
	}
	if list := c.request(authz.Admin, "GET", "/billing/preflight/?month=2025-12", nil).want(200).results(); len(list) != 0 {
		t.Errorf("another month is %v", list)
	}
	c.request(authz.Admin, "GET", "/billing/preflight/?month=x", nil).wantFields("month")
	c.request(authz.Nurse, "GET", path+"preflight/", nil).want(403)
	if _, err := c.app.DB().NewQuery("UPDATE billing_entries SET lifecycle_status = 'reviewed'").Execute(); err != nil {
		t.Fatal(err)
	}
	money.Claims.Submitter.ID = "SUB1"
	refused := c.request(authz.Admin, "POST", path+"submit/", nil).want(400, "invalid_state")
	if text := refused.body; !strings.Contains(text, "preflight_errors") || !strings.Contains(text, "missing_submitter") {
		t.Errorf("refused with %s", text)
	}
}
