package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// What was billed to a payer follows that payer's rules, not those of the patient's next one.
func TestShortSupplyAfterChangeOfPayer(t *testing.T) {
	c := newIngestingClinic(t, shortSupply)
	insure := func(patient, payer any) {
		t.Helper()
		c.request(authz.Provider, "PATCH", "/patients/"+fmt.Sprint(patient)+"/", object{"insurance": object{"payer_id": payer, "member_id": "M-1"}}).want(200)
	}
	two := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Two", "payer_id": "T2"}).want(201).at("id")
	sixteen := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Sixteen", "payer_id": "S16", "device_days": 16}).want(201).at("id")
	patient := c.billablePatient()
	insure(patient, two)
	since := c.now.AddDate(0, 0, -13) // from 2026 on
	c.storeDeviceDays(patient, "D-1", since, 10)
	var entries []string
	for code, day := range map[string]time.Time{"99445": c.now, "99453": since} {
		entries = append(entries, c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
			"patient_id": patient, "cpt_code": code, "service_date": day.Format(time.DateOnly), "duration_minutes": 0,
		}).want(201).text("id"))
	}
	insure(patient, sixteen)
	for _, entry := range entries {
		c.move(entry, "review", nil).want(200)
		c.move(entry, "submit", nil).want(200)
		c.wantChanged("another payer", entry, "")
	}
	c.request(authz.Admin, "PATCH", "/billing/payers/"+fmt.Sprint(two)+"/", object{"device_days": 16}).want(200)
	for _, entry := range entries {
		c.wantChanged("the payer's rule of later", entry, "")
	}
}

// The evidence of a sent claim names the member id with which it was sent.
func TestPacketAfterChangeOfPayer(t *testing.T) {
	h := newClaimsClinic(t)
	one := h.reviewedOne()
	patient := h.entry(one).text("patient_id")
	member := func(want any) {
		t.Helper()
		h.request(authz.Admin, "GET", "/billing/entries/"+one+"/evidence/", nil).want(200).wantAt(object{"beneficiary.member_id": want})
	}
	insure := func(insurer any, id string) {
		t.Helper()
		h.request(authz.Provider, "PATCH", "/patients/"+patient+"/", object{"insurance": object{"payer_id": insurer, "member_id": id}}).want(200)
	}
	next := h.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Next", "payer_id": "N3"}).want(201).at("id")
	member("W1ADA")
	insure(next, "NEW-9")
	member(nil) // the id is another payer's
	insure(h.insurer, "W1ADA")
	_, file := h.send(one)
	insure(h.insurer, "W2ADA")
	member("W1ADA")
	insure(next, "NEW-9")
	member("W1ADA")

	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(one, file): payer.Deny("CO", "16")})).want(200)
	for _, field := range []string{"cpt_code", "payer_id", "units", "icd10"} {
		h.move(one, "resubmit", object{"corrections": object{field: "99470", "notes": "x"}}).wantFields("corrections." + field)
	}
}
