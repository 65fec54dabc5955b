package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
)

// Lists hide a deleted patient as single reads do, with any filter, and their counts agree; a restored patient is listed
// again with all records.
func TestListsHideDeletedPatients(t *testing.T) {
	c := newClinic(t)
	gone, stays := c.enroll(nil), c.enroll(nil)
	for _, patient := range []string{gone, stays} {
		c.observe(patient, 120, 0, "")
		c.alert(patient, alerts.Critical)
		c.request(authz.Nurse, "POST", "/escalations/", object{"patient_id": patient, "priority": "urgent", "reason": "x"}).want(201)
		c.request(authz.Nurse, "PUT", "/patients/"+patient+"/vital-config/", object{"pulse": object{"high": 100}, "reason": "x"}).want(200)
	}
	c.request(authz.Admin, "PUT", "/settings/default-thresholds/", object{"pulse": object{"high": 105}, "reason": "x"}).want(200)

	wantListed := func(when string, ofGone, common int) {
		t.Helper()
		for _, path := range []string{"/ingestion/observations/", "/alerts/", "/escalations/", "/threshold-changes/"} {
			extra := 0
			if path == "/threshold-changes/" {
				extra = 1 // a change of the practice, without a patient
			}
			for query, want := range map[string]int{"": common + extra, "?patient_id=" + gone: ofGone, "?patient_id=" + stays: 1} {
				got := c.request(authz.ClinicalManager, "GET", path+query, nil).want(200)
				if got.at("count") != float64(want) || len(got.results()) != want {
					t.Errorf("%s: %s%s has %v and %d rows, want %d", when, path, query, got.at("count"), len(got.results()), want)
				}
			}
		}
	}
	wantListed("before", 1, 2)
	c.request(authz.Admin, "DELETE", "/patients/"+gone+"/", nil).want(204)
	wantListed("deleted", 0, 1)
	c.request(authz.Admin, "POST", "/patients/"+gone+"/restore/", nil).want(200)
	wantListed("restored", 1, 2)
}

// The readings of a deleted patient and their FHIR forms are hidden with the patient, also at their own addresses.
func TestReadingsOfDeletedPatients(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.observe(patient, 120, 0, "")
	reading := c.request(authz.Nurse, "GET", "/ingestion/observations/", nil).want(200).results()[0]["id"].(string)
	wantAll := func(status int) {
		t.Helper()
		for _, role := range []authz.Role{authz.Admin, authz.Nurse, authz.DataMonitor} {
			c.request(role, "GET", "/ingestion/observations/"+reading+"/", nil).want(status)
			c.request(role, "GET", "/fhir/observations/"+reading+"/", nil).want(status)
		}
	}
	wantAll(200)
	c.request(authz.Admin, "DELETE", "/patients/"+patient+"/", nil).want(204)
	wantAll(404)
	c.request(authz.Admin, "POST", "/patients/"+patient+"/restore/", nil).want(200)
	wantAll(200)
}
