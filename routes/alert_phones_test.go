package routes_test

import (
	"fmt"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
)

// Alerts for silent, stuck and low-battery devices, and critical alerts, show the patient's phone number to roles that may see
// it, until the alert is closed.
func TestStoryDeviceAlertShowsPhone(t *testing.T) {
	c := newClinic(t)
	const phone = "555-731-9042"
	patient, without := c.enroll(object{"phone": phone}), c.enroll(nil)
	for _, id := range []string{patient, without} {
		critical := alerts.Draft{PatientID: id, MeasuredAt: c.now, Finding: alerts.Finding{Type: "pulse", Level: alerts.Critical, Message: "Look."}}
		if _, err := alerts.Raise(c.app, critical, c.now); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{
			alerts.TypeMissedReading, alerts.TypeNoReading24h, alerts.TypeStaleReading, alerts.TypeDeviceBattery, alerts.TypeHubOffline, "blood_pressure",
		} {
			draft := alerts.Draft{PatientID: id, DeviceID: "BP-1", MeasuredAt: c.now, Finding: alerts.Finding{Type: kind, Level: alerts.Warning, Message: "Look."}}
			if _, err := alerts.Raise(c.app, draft, c.now); err != nil {
				t.Fatal(err)
			}
		}
	}
	called := map[string]bool{"missed_reading": true, "no_reading_24h": true, "stale_reading": true, "device_battery": true, "pulse": true}
	check := func(role authz.Role, list []object, sees bool) {
		t.Helper()
		if len(list) == 0 {
			t.Errorf("%s sees no alert", role)
		}
		for _, alert := range list {
			var want any
			if sees && alert["patient_id"] == patient && called[alert["type"].(string)] {
				want = phone
			}
			if alert["patient_phone"] != want {
				t.Errorf("%s is shown the phone %v for %v", role, alert["patient_phone"], alert["type"])
			}
		}
	}
	for _, role := range []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA} {
		list := c.request(role, "GET", "/alerts/?page_size=100", nil).results()
		check(role, list, true)
		if len(list) != 14 {
			t.Errorf("%s sees %d alerts", role, len(list))
		}
		check(role, c.request(role, "GET", "/devices/alerts/?page_size=100", nil).results(), true)
	}
	check(authz.DataMonitor, c.request(authz.DataMonitor, "GET", "/devices/alerts/?page_size=100", nil).results(), false)
	one := c.request(authz.MA, "GET", "/alerts/?type=device_battery&patient_id="+patient, nil).results()[0]
	path := "/alerts/" + fmt.Sprint(one["id"]) + "/"
	c.request(authz.MA, "GET", path, nil).want(200).wantAt(object{"patient_phone": phone})
	c.request(authz.Nurse, "POST", path+"resolve/", object{}).want(200).wantAt(object{"patient_phone": nil})

	// A phone number that cannot be decrypted is left out; the alert is still listed.
	if _, err := c.app.DB().Update("patients", dbx.Params{"phone": "v1.lost.AAAA"}, dbx.HashExp{"id": patient}).Execute(); err != nil {
		t.Fatal(err)
	}
	check(authz.Nurse, c.request(authz.Nurse, "GET", "/alerts/?type=stale_reading", nil).results(), false)
}
