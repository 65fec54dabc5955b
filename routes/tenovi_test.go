package routes_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// tenovi is one measurement as the vendor sends it.
func tenovi(metric, device, patient string, at time.Time, values string) string {
	return fmt.Sprintf(`{"metric":%q,"device_name":"Tenovi BPM - L","hwi_device_id":%q,"patient_id":%q,"hardware_uuid":"A1B2C3D4E5F6","sensor_code":"10",%s,
		"created":%q,"timestamp":%q,"timezone_offset":-5,"estimated_timestamp":false,"filter_params":{"measurement_index":1}}`,
		metric, device, patient, values, at.Format(time.RFC3339), at.Format(time.RFC3339))
}

func pressure(device, patient string, at time.Time, systolic int) string {
	return tenovi("blood_pressure", device, patient, at, fmt.Sprintf(`"value_1":"%d","value_2":"82"`, systolic))
}

func pulse(device, patient string, at time.Time, bpm int) string {
	return tenovi("pulse", device, patient, at, fmt.Sprintf(`"value_1":"%d","value_2":null`, bpm))
}

func TestTenoviArray(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"gateway_patient_id": "GW-1"})
	body := "[" + pressure("T-1", "GW-1", c.now, 128) + "," + pulse("T-1", "GW-1", c.now, 71) + "," +
		tenovi("battery_percentage", "T-1", "", c.now, `"value_1":8,"value_2":null`) + "," + tenovi("steps", "W-1", "", c.now, `"value_1":412`) + "]"
	answer := c.sendVendor(t, "tenovi", body).wantStatuses("accepted", "accepted", "ignored")
	if first := answer.delivered()[0]; first["observation_id"] == nil || first["measurement_type"] != "blood_pressure" {
		t.Errorf("the reading is answered with %v", first)
	}
	c.wantReadings(t, "blood_pressure 128.0/82.0 71 ")
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "T-1", "patient_id": id, "device_type": "blood_pressure"}).want(200)
	c.request(authz.Nurse, "GET", "/devices/T-1/", nil).want(200).wantAt(object{"hub_id": "A1B2C3D4E5F6", "battery_level": 8.0, "battery_state": "critical"})
	before := vigiltest.RowCounts(t, c.app)
	c.sendVendor(t, "tenovi", body).wantStatuses("duplicate", "duplicate", "ignored")
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 0 {
		t.Errorf("a repeat adds %v", added)
	}
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 150)).wantStatuses("quarantined conflicting_duplicate")

	// An unreadable part does not affect the others and is quarantined; a delivery without a readable part is refused.
	later := c.now.Add(-time.Hour)
	c.sendVendor(t, "tenovi", "["+pressure("T-1", "GW-1", later, 128)+","+pulse("T-1", "GW-1", later, 7)+",7]").
		wantStatuses("accepted", "rejected validation_error", "rejected parse_error")
	c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", later, 7)).wantFields("value_1")
	c.sendVendor(t, "tenovi", `{"metric":`).want(400, "parse_error")
	if listed := c.request(authz.MA, "GET", "/ingestion/quarantine/?status=rejected", nil).results(); len(listed) != 3 {
		t.Errorf("%d rejected events are listed", len(listed))
	}
}

// Without "Post as Array" the parts arrive one after the other, in any order: the reading is stored once, with its
// pulse.
func TestTenoviParts(t *testing.T) {
	for _, test := range []struct {
		name  string
		parts []string
		want  []string
	}{
		{"the pressure first", []string{"pressure", "pulse", "irregular"}, []string{"accepted", "accepted", "accepted"}},
		{"the pulse first", []string{"pulse", "irregular", "pressure"}, []string{"quarantined reading_missing", "quarantined reading_missing", "accepted"}},
		{"the pressure in between", []string{"pulse", "pressure", "irregular"}, []string{"quarantined reading_missing", "accepted", "accepted"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.enroll(object{"gateway_patient_id": "GW-1"})
			bodies := map[string]string{
				"pressure": pressure("T-1", "GW-1", c.now, 128), "pulse": pulse("T-1", "GW-1", c.now, 190),
				"irregular": tenovi("irregular_heartbeat", "T-1", "GW-1", c.now, `"value_1":1,"value_2":null`),
			}
			for i, part := range test.parts {
				c.sendVendor(t, "tenovi", bodies[part]).wantStatuses(test.want[i])
			}
			c.wantReadings(t, "blood_pressure 128.0/82.0 190 yes")
			// A dangerous pulse alerts once and belongs to the reading; no part is left waiting.
			if raised := c.queryRows(t, `SELECT type || ' ' || level || ' ' || (observation != '') FROM alerts ORDER BY type`); fmt.Sprint(raised) != "[device_info normal 1 pulse critical 1]" {
				t.Errorf("raised are %q", raised)
			}
			if n := c.queryRows(t, `SELECT (SELECT SUM(readings) FROM reading_days) || ' ' || (SELECT COUNT(*) FROM transmissions) || ' ' || (SELECT COUNT(*) FROM gateway_events WHERE status = 'open')`); n[0] != "1 1 0" {
				t.Errorf("days, deliveries, waiting: %s", n[0])
			}
			before := vigiltest.RowCounts(t, c.app)
			for _, part := range test.parts {
				c.sendVendor(t, "tenovi", bodies[part]).wantStatuses("duplicate")
			}
			c.sendVendor(t, "tenovi", "["+bodies["pressure"]+","+bodies["pulse"]+","+bodies["irregular"]+"]").wantStatuses("duplicate")
			if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 0 {
				t.Errorf("repeats add %v", added)
			}
			c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", c.now, 72)).wantStatuses("quarantined conflicting_duplicate")
		})
	}
}

// Parts that arrive concurrently are merged.
func TestTenoviPartsAtOnce(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	const readings = 40
	var senders sync.WaitGroup
	for i := range readings {
		at := c.now.Add(-time.Duration(i) * time.Minute)
		for _, body := range []string{pressure("T-1", "GW-1", at, 128), pulse("T-1", "GW-1", at, 71)} {
			senders.Go(func() { c.sendVendor(t, "tenovi", body).want(200) })
		}
	}
	senders.Wait()
	if n := c.queryRows(t, `SELECT COUNT(*) || ' ' || SUM(pulse = 71) || ' ' || (SELECT COUNT(*) FROM gateway_events WHERE status = 'open') FROM observations`); n[0] != "40 40 0" {
		t.Errorf("readings, with their pulse, waiting: %s", n[0])
	}
}

// Parts of an unknown device wait for a person and become one reading in any order of release.
func TestTenoviReleases(t *testing.T) {
	for _, first := range []int{0, 1} {
		c := newIngestingClinic(t)
		patient := c.enroll(nil)
		var ids []string
		for _, body := range []string{pressure("T-1", "", c.now, 190), pulse("T-1", "", c.now, 71)} {
			answer := c.sendVendor(t, "tenovi", body).wantStatuses("quarantined unknown_patient")
			ids = append(ids, answer.delivered()[0]["event_id"].(string))
		}
		release := func(id string) reply {
			return c.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": patient})
		}
		if first == 1 {
			release(ids[1]).want(400, "reading_missing")
		}
		release(ids[0]).want(201).wantAt(object{"systolic": 190.0, "pulse": 71.0, "alert_triggered": true, "patient_id": patient})
		release(ids[1]).want(400, "invalid_state") // it was released with its reading
		c.wantReadings(t, "blood_pressure 190.0/82.0 71 ")
	}
}

func TestTenoviSecrets(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	body := pressure("T-1", "GW-1", c.now, 128)
	before := vigiltest.RowCounts(t, c.app)
	for header, secret := range map[string]string{"": "", "Authorization": "Bearer wrong", "X-Api-Key": vendorSecret + "x"} {
		c.sendVendorWith(t, "tenovi", body, header, secret).want(401, "invalid_secret")
	}
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 1 || added["audit_log"] != 1 {
		t.Errorf("wrong secrets left %v", added)
	}
	for _, header := range []string{"Authorization", "X-Api-Key"} {
		for _, scheme := range []string{"", "Bearer ", "Api-Key "} {
			c.sendVendorWith(t, "tenovi", body, header, scheme+vendorSecret).want(200)
		}
	}
	c.postEvent(t, body).want(400) // the contract's gateway has its own format

	closed := newIngestingClinic(t, func(e *routes.Engines) { e.GatewaySources = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")} })
	closed.sendVendor(t, "tenovi", body).want(403, "source_not_allowed")
	settings := gatewaySettings
	gatewaySettings.TenoviSecret = ""
	defer func() { gatewaySettings = settings }()
	newIngestingClinic(t).sendVendor(t, "tenovi", body).want(503, "webhook_not_configured")
}

// Readings of two vendors with the same device, second and kind are two readings.
func TestVendorsDoNotCollide(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	c.postEvent(t, cuffEvent("T-1", "GW-1", 128, c.now)).want(200).wantAt(object{"status": "accepted"})
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 131)).wantStatuses("accepted")
	c.wantReadings(t, "blood_pressure 128.0/80.0 - ", "blood_pressure 131.0/82.0 - ")
	c.postEvent(t, `{"x":1}`).want(400)
	c.sendVendor(t, "tenovi", `{"x":1}`).want(400)
	if n := c.queryRows(t, `SELECT GROUP_CONCAT(vendor, ',') FROM (SELECT vendor FROM gateway_events WHERE status = 'rejected' ORDER BY vendor)`); n[0] != ",tenovi" {
		t.Errorf("rejected of %q", n[0])
	}
}
