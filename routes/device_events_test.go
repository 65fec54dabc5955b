package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func (c *clinic) deviceEvent(t *testing.T, m gateway.Measurement) reply {
	t.Helper()
	body, err := m.Body()
	if err != nil {
		t.Fatal(err)
	}
	return c.postEvent(t, string(body))
}

// The webhook applies device and hub status events once, in the transaction that stores the event; repeated events
// change nothing.
func TestDeviceEvents(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"gateway_patient_id": "GW-1"})
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "BP-1", "patient_id": id, "device_type": "blood_pressure"}).want(200)
	connected := gateway.Measurement{EventType: gateway.DeviceConnected, DeviceID: "BP-1", HubID: "H1", Timestamp: c.now, BatteryLevel: new(84)}
	c.deviceEvent(t, connected).want(200).wantAt(object{"status": "accepted"})
	c.request(authz.Nurse, "GET", "/devices/BP-1/", nil).want(200).wantAt(object{
		"status": "connected", "hub_id": "H1", "battery_level": 84.0, "battery_state": "normal", "last_seen_at": "2026-01-15T13:45:00Z", "last_reading_at": nil,
	})
	c.now = c.now.Add(time.Minute)
	empty := fmt.Sprintf(`{"event_type":"measurement.created","device_id":"BP-1","patient_id":"GW-1","measurement_type":"bp","values":{"systolic":120,"diastolic":80},
		"timestamp":%q,"battery_level":8,"signal_strength":-70,"hub_id":"H2","device_model":"BP-7"}`, c.now.Format(time.RFC3339))
	c.postEvent(t, empty).want(200).wantAt(object{"status": "accepted"})
	c.request(authz.Nurse, "GET", "/devices/BP-1/", nil).want(200).wantAt(object{
		"hub_id": "H2", "battery_level": 8.0, "battery_state": "critical", "signal_strength": -70.0, "model": "BP-7", "last_reading_at": "2026-01-15T13:46:00Z",
	})
	offline := gateway.Measurement{EventType: gateway.HubOffline, HubID: "H2", Timestamp: c.now.Add(time.Minute)}
	c.deviceEvent(t, offline).want(200).wantAt(object{"status": "accepted"})
	before := vigiltest.RowCounts(t, c.app)
	for _, again := range []gateway.Measurement{connected, offline} {
		c.deviceEvent(t, again).want(200).wantAt(object{"status": "duplicate"})
	}
	c.postEvent(t, empty).want(200).wantAt(object{"status": "duplicate"})
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 0 {
		t.Errorf("a duplicate adds %v", added)
	}
	want := []object{
		{"type": "hub_offline", "level": "warning", "value": nil, "patient_id": id, "message": "Hub H2 is offline."},
		{"type": "device_battery", "level": "critical", "value": 8.0, "threshold": 10.0, "patient_id": id},
	}
	got := c.request(authz.DataMonitor, "GET", "/devices/alerts/", nil).results()
	if len(got) != len(want) {
		t.Fatalf("the alerts are %v", got)
	}
	for i, alert := range want {
		for name, value := range alert {
			if got[i][name] != value {
				t.Errorf("alert %d: %s is %v, want %v", i, name, got[i][name], value)
			}
		}
	}
	// Any signed event that names a hub shows that the hub is alive, even one that is ignored, unmatched or invalid.
	c.now = c.now.Add(5 * time.Minute)
	for n, body := range []string{
		`{"event_type":"firmware.updated","hub_id":"H3"}`,
		`{"event_type":"measurement.created","device_id":"X","patient_id":"nobody","measurement_type":"bp","values":{"systolic":120,"diastolic":80},"timestamp":"2026-01-15T13:50:00Z","hub_id":"H4"}`,
		`{"event_type":"measurement.created","device_id":"X","hub_id":"H5"}`,
		`{"event_type":"hub.heartbeat","hub_id":"H2","timestamp":"2026-01-15T13:50:00Z"}`,
	} {
		if status := c.postEvent(t, body).status; status >= 500 {
			t.Errorf("event %d answers %d", n, status)
		}
	}
	hubs := map[any]any{}
	for _, hub := range c.request(authz.Nurse, "GET", "/hubs/", nil).results() {
		hubs[hub["hub_id"]] = hub["status"]
	}
	for _, hub := range []string{"H1", "H2", "H3", "H4", "H5"} {
		if hubs[hub] != "online" {
			t.Errorf("hub %s is %v", hub, hubs[hub])
		}
	}
	// A reading typed with an unknown device registers the device but does not change its connection state.
	c.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": id, "weight_kg": 80, "device_id": "W-9", "measured_at": "2026-01-15T13:00:00Z"}).want(201)
	c.request(authz.Nurse, "GET", "/devices/W-9/", nil).want(200).wantAt(object{
		"status": "discovered", "device_type": "weight", "patient_id": nil, "last_reading_at": "2026-01-15T13:00:00Z", "last_seen_at": nil,
	})
}
