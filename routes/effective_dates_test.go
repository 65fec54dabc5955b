package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/routes"
)

// sentMonth submits the 99454 and 99457 of a new patient: data on 16 days from December 15, a call on January 5; its period ends on January 13.
func (c *clinic) sentMonth(hour int) (patient, supply, minutes string) {
	c.t.Helper()
	patient = c.billablePatient()
	c.storeDeviceDays(patient, "D-"+patient[24:], c.now.AddDate(0, 0, -31), 16)
	c.logCall(patient, c.now.AddDate(0, 0, -10).Add(time.Duration(hour)*time.Hour).Format(time.RFC3339), 20)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "all"}).want(200)
	for _, entry := range c.request(authz.Admin, "GET", "/billing/entries/?status=pending&patient_id="+patient, nil).want(200).results() {
		id := entry["id"].(string)
		c.move(id, "review", nil).want(200)
		c.move(id, "submit", nil).want(200)
		switch entry["cpt_code"] {
		case "99454":
			supply = id
		case "99457":
			minutes = id
		}
	}
	return patient, supply, minutes
}

func (c *clinic) wantChanged(what, entry, reason string) {
	c.t.Helper()
	got := c.request(authz.Admin, "GET", "/billing/entries/"+entry+"/", nil).want(200)
	isChanged := contains(got.at("warnings"), "evidence_changed")
	if isChanged != (reason != "") || isChanged && !contains(got.at("warnings"), reason) || isChanged != (got.at("evidence_changed_at") != nil) {
		c.t.Errorf("%s: the warnings are %v since %v, want %q", what, got.at("warnings"), got.at("evidence_changed_at"), reason)
	}
}

// A consent that ended before its revocation was recorded counts until then, and the claims that relied on it are marked.
func TestConsentEndedEarlier(t *testing.T) {
	c := newClinic(t)
	patient, supply, minutes := c.sentMonth(0)
	consent := c.request(authz.Nurse, "GET", "/patients/"+patient+"/consents/", nil).results()[0]
	path := fmt.Sprint("/patients/", patient, "/consents/", consent["id"], "/revoke/")
	for _, wrong := range []any{"2026-01-16", "2026-01-15T13:46:00Z", "2025-10-31", "yesterday", 7} {
		c.request(authz.Nurse, "POST", path, object{"reason": "Told by telephone", "effective_at": wrong}).wantFields("effective_at")
	}
	c.wantChanged("nothing was revoked", supply, "")
	c.request(authz.Nurse, "POST", path, object{"reason": "Told by telephone", "effective_at": "2025-12-23"}).want(200).wantAt(object{
		"status": "revoked", "effective_at": "2025-12-23T05:00:00Z", "revoked_at": "2026-01-15T13:45:00Z",
	})
	c.wantChanged("nine days remain", supply, "days_below_minimum")
	c.wantChanged("called after the end", minutes, "missing_consent")
	if got := c.request(authz.Admin, "GET", "/billing/entries/"+supply+"/evidence/", nil).want(200).at("consents").([]any)[0].(object); got["effective_at"] != "2025-12-23T05:00:00Z" {
		t.Errorf("the evidence has the consent %v", got)
	}

	other, supply, _ := c.sentMonth(1)
	consent = c.request(authz.Nurse, "GET", "/patients/"+other+"/consents/", nil).results()[0]
	c.request(authz.Nurse, "POST", fmt.Sprint("/patients/", other, "/consents/", consent["id"], "/revoke/"), object{"reason": "Moves away"}).want(200).wantAt(object{"effective_at": nil})
	c.wantChanged("revoked after the period", supply, "")
}

// Claims for services after a death, or after the end of monitoring, are marked when it is recorded, and no longer once the patient is restored.
func TestArchivedWithEarlierDate(t *testing.T) {
	for name, test := range map[string]struct {
		archive         object
		supply, minutes string
	}{
		"today":                {object{}, "", ""},
		"died before the call": {object{"deceased_at": "2026-01-02", "effective_at": "2026-01-14"}, "not_active", "not_active"},
		"died after the call":  {object{"deceased_at": "2026-01-12"}, "not_active", ""},
		"ended before both":    {object{"effective_at": "2025-12-20"}, "not_active", "not_active"},
		"ended on the last":    {object{"effective_at": "2026-01-13"}, "", ""},
	} {
		var money *billing.Engine
		c := newClinic(t, func(e *routes.Engines) { money = e.Billing })
		patient, supply, minutes := c.sentMonth(0)
		test.archive["reason"] = "Ended"
		c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/archive/", test.archive).want(200)
		c.wantChanged(name, supply, test.supply)
		c.wantChanged(name, minutes, test.minutes)
		c.request(authz.Admin, "DELETE", "/patients/"+patient+"/", nil).want(204)
		if _, _, err := money.RecheckAll(t.Context(), c.app, c.now); err != nil {
			t.Fatal(err)
		}
		c.wantChanged(name+", deleted", supply, test.supply)
		c.request(authz.Admin, "POST", "/patients/"+patient+"/restore/", nil).want(200)
		c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/unarchive/", nil).want(200)
		c.wantChanged(name+", in care again", supply, "")
		c.wantChanged(name+", in care again", minutes, "")
	}
}

// Each archiving ends an episode of care, so that the set-up of a later one stays billable after the patient is archived again.
func TestSetupAfterSecondArchiving(t *testing.T) {
	c := newClinic(t)
	patient := c.billablePatient()
	setUp := func(device string) string {
		t.Helper()
		taught := c.now
		c.storeDeviceDays(patient, device, taught.Add(-time.Hour), 16)
		c.now = c.now.AddDate(0, 0, 16)
		return c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
			"patient_id": patient, "cpt_code": "99453", "service_date": taught.Format(time.DateOnly), "duration_minutes": 0,
		}).want(201).text("id")
	}
	archive := func() {
		t.Helper()
		c.now = c.now.AddDate(0, 0, 1)
		c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/archive/", object{"reason": "Paused"}).want(200)
		c.now = c.now.AddDate(0, 0, 1)
	}
	restore := func() { c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/unarchive/", nil).want(200) }
	first := setUp("D-1")
	c.move(first, "review", nil).want(200)
	c.move(first, "submit", nil).want(200)
	archive()
	restore()
	second := setUp("D-2")
	archive()
	c.move(second, "review", nil).want(200)
	c.move(second, "submit", nil).want(200)
	restore()
	third := setUp("D-3")
	archive()
	restore()
	c.move(third, "review", nil).want(200)
	c.wantChanged("billed between two interruptions", second, "")
}

// Who dies in a period after enough days with data is billed for it, on the day of death; who leaves is not.
func TestDeviceSupplyOfTheDeceased(t *testing.T) {
	for deceased, want := range map[string]string{"2025-12-29": "", "2025-12-30": "99454 2025-12-30", "2026-01-13": "99454 2026-01-13", "": ""} {
		c := newClinic(t)
		patient := c.billablePatient()
		c.storeDeviceDays(patient, "D-1", c.now.AddDate(0, 0, -31), 16)
		archive := object{"reason": "Ended", "effective_at": "2026-01-10"}
		if deceased != "" {
			archive = object{"reason": "Died", "deceased_at": deceased}
		}
		c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/archive/", archive).want(200)
		c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200)
		got := ""
		for _, entry := range c.request(authz.Admin, "GET", "/billing/entries/?cpt_code=99454", nil).want(200).results() {
			got = fmt.Sprint(entry["cpt_code"], " ", entry["service_date"])
			c.move(entry["id"].(string), "review", nil).want(200)
		}
		if got != want {
			t.Errorf("died on %q: billed %q, want %q", deceased, got, want)
		}
	}
}
