package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

func TestAssignDevice(t *testing.T) {
	c := newClinic(t)
	id, other := c.enroll(nil), c.enroll(nil)
	body := object{"device_id": "BP-1", "patient_id": id, "device_type": "bp_monitor"}
	answer := object{
		"status": "assigned", "estimated_delivery": "2026-01-23", "device_id": "BP-1", "patient_id": id,
		"device_type": "blood_pressure", "assigned_at": "2026-01-15T13:45:00Z",
	}
	c.request(authz.MA, "POST", "/devices/assign/", body).want(200).wantAt(answer)
	before := vigiltest.RowCounts(t, c.app)
	c.now = c.now.Add(72 * time.Hour)
	c.request(authz.Nurse, "POST", "/devices/assign/", body).want(200).wantAt(answer)
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 0 {
		t.Errorf("the same again added %v", added)
	}
	body["patient_id"] = other
	c.request(authz.Nurse, "POST", "/devices/assign/", body).want(400, "device_already_assigned")
	body["patient_id"] = unknownPatient
	c.request(authz.Nurse, "POST", "/devices/assign/", body).want(404, "not_found")
	body["patient_id"], body["device_id"] = other, "BP-2"
	c.request(authz.Admin, "POST", "/patients/"+other+"/archive/", object{"reason": "Moved"}).want(200)
	c.request(authz.Nurse, "POST", "/devices/assign/", body).wantFields("patient_id")
	c.request(authz.Nurse, "POST", "/devices/assign/", object{}).wantFields("device_id", "patient_id", "device_type")
	c.request(authz.Nurse, "POST", "/devices/assign/", object{
		"device_id": strings.Repeat("x", 129), "patient_id": "x", "device_type": "two words", "shipping_address": 5, "assigned_at": "2027-01-01T00:00:00Z",
	}).wantFields("device_id", "patient_id", "device_type", "shipping_address", "assigned_at")
	if events := c.events(id); !slices.Contains(events, "device.assign") {
		t.Errorf("the audit trail has %v", events)
	}
	c.wantRoles("POST", "/devices/assign/", object{"device_id": "X", "patient_id": unknownPatient, "device_type": "scale"}, assigners...)
}

var assigners = []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}

// A device may be assigned with a past start date, but not over the time of another patient with the same device.
func TestAssignInThePast(t *testing.T) {
	c := newClinic(t)
	first, second := c.enroll(nil), c.enroll(nil)
	give := func(patient, at string) reply {
		return c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "BP-1", "patient_id": patient, "device_type": "blood_pressure", "assigned_at": at})
	}
	give(first, "2026-01-10T08:00:00-05:00").want(200).wantAt(object{"assigned_at": "2026-01-10T13:00:00Z"})
	c.request(authz.Nurse, "POST", "/devices/BP-1/unassign/", object{"reason": "Returned"}).want(200).
		wantAt(object{"status": "inventory", "patient_id": nil, "assigned_at": nil})
	c.request(authz.Nurse, "POST", "/devices/BP-1/unassign/", object{"reason": "Again"}).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", "/devices/BP-1/unassign/", object{}).wantFields("reason")
	give(second, "2026-01-15T13:44:59Z").wantFields("assigned_at")
	give(second, "2026-01-09T00:00:00Z").wantFields("assigned_at")
	give(second, "2026-01-15T13:45:00Z").want(200)

	detail := c.request(authz.DataMonitor, "GET", "/devices/BP-1/", nil).want(200)
	history, _ := detail.object()["assignments"].([]any)
	want := []object{
		{"patient_id": first, "from": "2026-01-10T13:00:00Z", "to": "2026-01-15T13:45:00Z"},
		{"patient_id": second, "from": "2026-01-15T13:45:00Z", "to": nil},
	}
	if len(history) != len(want) {
		t.Fatalf("the history is %v", history)
	}
	for i, held := range want {
		for name, value := range held {
			if got := history[i].(object)[name]; got != value {
				t.Errorf("assignment %d: %s is %v, want %v", i, name, got, value)
			}
		}
	}
	// A portal user sees only their own time with the device, and no other device.
	owner := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(second))
	mine := c.requestAs(owner, "GET", "/devices/BP-1/", nil).want(200)
	if list, _ := mine.object()["assignments"].([]any); len(list) != 1 {
		t.Errorf("the portal sees %v", list)
	}
	stranger := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(first))
	c.requestAs(stranger, "GET", "/devices/BP-1/", nil).want(404)
	if list := c.requestAs(stranger, "GET", "/devices/", nil).results(); len(list) != 0 {
		t.Errorf("the portal lists %v", list)
	}
	if list := c.requestAs(owner, "GET", "/devices/", nil).results(); len(list) != 1 {
		t.Errorf("the portal lists %v", list)
	}
}

func TestWithoutManagedMode(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.Devices = devices.NewEngine(devices.Rules{PracticeZone: newYork}) })
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "BP-1", "patient_id": c.enroll(nil), "device_type": "spirometer"}).want(200).
		wantAt(object{"estimated_delivery": nil, "device_type": "spirometer"})
	if n := vigiltest.RowCounts(t, c.app)[collections.DeviceOrders]; n != 0 {
		t.Errorf("%d orders", n)
	}
}

func TestDeviceRegistry(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"address": object{"line1": "1 Elm St", "city": "Springfield", "state": "IL", "zip": "62701"}})
	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "W 1", "device_type": "scale", "model": "S-9"}).want(201).wantAt(object{
		"device_id": "W 1", "device_type": "weight", "model": "S-9", "status": "inventory", "patient_id": nil, "hub_id": nil, "battery_level": nil,
		"battery_state": nil, "flagged": false,
	})
	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "W 1", "device_type": "scale"}).wantFields("device_id")
	c.request(authz.Nurse, "GET", "/devices/W%201/", nil).want(200)
	c.request(authz.Nurse, "GET", "/devices/W-2/", nil).want(404)
	c.insert(collections.Devices, dbx.Params{"device_id": "W-3", "status": "discovered", "battery_state": "low", "hub_id": "H1"})
	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "W-3", "device_type": "scale"}).want(201).wantAt(object{"status": "inventory", "hub_id": "H1"})

	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "W-3", "patient_id": id, "device_type": "scale"}).want(200)
	for filter, want := range map[string]int{
		"": 2, query("patient_id", id): 1, query("device_type", "weight_scale"): 2, query("status", "inventory"): 1, query("battery_state", "low"): 1,
		query("hub_id", "H1"): 1, query("hub_id", "H2"): 0,
	} {
		if got := c.request(authz.DataMonitor, "GET", "/devices/"+filter, nil).results(); len(got) != want {
			t.Errorf("%q lists %d devices, want %d", filter, len(got), want)
		}
	}
	c.request(authz.Nurse, "GET", "/devices/"+query("status", "lost", "battery_state", "full", "patient_id", "x"), nil).wantFields("status", "battery_state", "patient_id")

	c.request(authz.Nurse, "POST", "/devices/W-3/replace/", object{"new_device_id": "W-3", "reason": "x"}).wantFields("new_device_id")
	c.request(authz.Nurse, "POST", "/devices/W%201/replace/", object{"new_device_id": "W-4", "reason": "x"}).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", "/devices/W-3/replace/", object{"new_device_id": "W-4", "reason": "Broken"}).want(200).wantAt(object{
		"device_id": "W-4", "device_type": "weight", "status": "assigned", "patient_id": id, "assigned_at": "2026-01-15T13:45:00Z",
	})
	c.request(authz.Nurse, "GET", "/devices/W-3/", nil).want(200).wantAt(object{"status": "replaced", "patient_id": nil})
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "W-3", "patient_id": id, "device_type": "scale"}).want(400, "invalid_state")
	for _, event := range []string{"device.assign", "device.replace"} {
		if events := c.events(id); !slices.Contains(events, event) {
			t.Errorf("the audit trail has %v", events)
		}
	}
	var address string
	orders, err := c.app.FindRecordsByFilter(collections.DeviceOrders, "kind = 'replacement'", "", 0, 0)
	if err == nil && len(orders) == 1 {
		address = orders[0].GetString("shipping_address")
	}
	if !strings.HasPrefix(address, "1 Elm St, Springfield, IL 62701") {
		t.Errorf("the replacement goes to %q", address)
	}
	c.wantRoles("POST", "/devices/", object{"device_id": "W-3", "device_type": "scale"}, assigners...)
	for _, action := range []string{"unassign", "replace", "setup-complete"} {
		c.wantRoles("POST", "/devices/none/"+action+"/", object{"reason": "x", "new_device_id": "y"}, assigners...)
	}
	c.wantRoles("GET", "/devices/none/", nil, authz.Roles...)
}

func TestDeviceSetup(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "W-1", "device_type": "scale"}).want(201)
	c.request(authz.Nurse, "POST", "/devices/W-1/setup-complete/", nil).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "W-1", "patient_id": id, "device_type": "scale"}).want(200)
	c.request(authz.Nurse, "POST", "/devices/W-1/setup-complete/", nil).want(200).wantAt(object{"setup_completed_at": "2026-01-15T13:45:00Z"})
	c.request(authz.Nurse, "POST", "/devices/W-1/setup-complete/", object{
		"educated_by": c.people[authz.MA].Number(), "completed_at": "2026-01-14T10:00:00-05:00", "notes": "By phone.\nTwice.",
	}).want(200).wantAt(object{"setup_completed_at": "2026-01-14T15:00:00Z"})
	c.request(authz.Nurse, "POST", "/devices/W-1/setup-complete/", object{"completed_at": "2026-01-16T00:00:00Z", "educated_by": -1, "notes": strings.Repeat("x", 4001)}).
		wantFields("completed_at", "educated_by", "notes")
	for _, by := range []int64{9999, c.people[authz.Patient].Number()} {
		c.request(authz.Nurse, "POST", "/devices/W-1/setup-complete/", object{"educated_by": by}).want(404)
	}
	held, err := collections.CurrentAssignment(c.app, "W-1")
	if err != nil || held.GetString("setup_completed_by") != c.people[authz.MA].Email() {
		t.Errorf("the assignment does not name the trainer: %v", err)
	}
	// The next patient has not been trained yet; the earlier training stays on record.
	c.request(authz.Nurse, "POST", "/devices/W-1/unassign/", object{"reason": "Returned"}).want(200).wantAt(object{"setup_completed_at": nil})
	history, err := collections.AssignmentsOf(c.app, "W-1")
	if err != nil || len(history) != 1 || history[0].GetString("setup_completed_at") == "" {
		t.Errorf("the evidence is gone: %v", err)
	}
}

// The set-up of a device that was returned or replaced stays the evidence of its 99453.
func TestSetupOfReturnedDevice(t *testing.T) {
	for _, end := range []string{"unassign", "replace"} {
		c := newClinic(t)
		patient := c.billablePatient()
		c.storeDeviceDays(patient, "D-1", c.now.AddDate(0, 0, -20), 16)
		if _, err := c.app.DB().Update(collections.Devices, dbx.Params{"setup_completed_at": "", "setup_completed_by": ""}, dbx.HashExp{"device_id": "D-1"}).Execute(); err != nil {
			t.Fatal(err)
		}
		taught := c.now.AddDate(0, 0, -20)
		c.request(authz.Nurse, "POST", "/devices/D-1/setup-complete/", object{"completed_at": taught.Format(time.RFC3339)}).want(200)
		entry := c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
			"patient_id": patient, "cpt_code": "99453", "service_date": taught.Format(time.DateOnly), "duration_minutes": 0,
		}).want(201).text("id")
		if end == "unassign" {
			c.request(authz.Nurse, "POST", "/devices/D-1/unassign/", object{"reason": "Returned"}).want(200)
		} else {
			c.request(authz.Nurse, "POST", "/devices/D-1/replace/", object{"new_device_id": "D-2", "reason": "Broken"}).want(200)
		}
		packet := c.request(authz.DataMonitor, "GET", "/billing/entries/"+entry+"/evidence/", nil).want(200)
		if at := taught.UTC().Format("2006-01-02T15:04:05Z"); !strings.Contains(packet.body, `"setup_completed_at":"`+at+`"`) {
			t.Errorf("%s: the packet lacks the set-up of %s: %s", end, at, packet.body)
		}
		c.move(entry, "review", nil).want(200)
		c.move(entry, "submit", nil).want(200)
	}
}

func TestHubsAndDeviceAlerts(t *testing.T) {
	c := newClinic(t)
	id, other := c.enroll(nil), c.enroll(nil)
	for device, patient := range map[string]string{"W-1": id, "W-2": other} {
		c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": device, "patient_id": patient, "device_type": "scale"}).want(200)
	}
	stored := collections.FormatInstant(c.now)
	for _, device := range []string{"W-1", "W-2"} {
		if _, err := c.app.DB().Update(collections.Devices, dbx.Params{"hub_id": "H1", "last_seen_at": stored}, dbx.HashExp{"device_id": device}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	c.insert(collections.Hubs, dbx.Params{"hub_id": "H1", "status": "online", "last_heartbeat_at": "2026-01-15T13:00:00.000000Z"})
	hubs := c.request(authz.DataMonitor, "GET", "/hubs/", nil).results()
	if len(hubs) != 1 || hubs[0]["last_heartbeat_at"] != "2026-01-15T13:45:00Z" || len(hubs[0]["devices"].([]any)) != 2 {
		t.Errorf("the hubs are %v", hubs)
	}
	for i, row := range []dbx.Params{
		{"type": "device_battery", "level": "critical", "patient": id, "device_id": "W-1"},
		{"type": "missed_reading", "level": "no_data", "patient": other, "parameter": "2026-01-14"},
		{"type": "blood_pressure", "level": "critical", "patient": id, "observation": "x"},
		{"type": "device_info", "level": "normal", "patient": id, "observation": "x"},
		{"type": "device_info", "level": "normal", "patient": id, "device_id": "W-1"},
	} {
		row["id"], row["status"], row["created_at"] = collections.NumberID(int64(100+i)), "active", stored
		c.insert(collections.Alerts, row)
	}
	for filter, want := range map[string]int{
		"": 3, query("patient_id", id): 2, query("type", "missed_reading"): 1, query("level", "critical"): 1, query("device_id", "W-1"): 2,
		query("status", "resolved"): 0, query("acknowledged", "false"): 3, query("date_to", "2026-01-14"): 0,
	} {
		if got := c.request(authz.DataMonitor, "GET", "/devices/alerts/"+filter, nil).results(); len(got) != want {
			t.Errorf("%q lists %d alerts, want %d", filter, len(got), want)
		}
	}
	c.request(authz.Nurse, "GET", "/devices/alerts/"+query("type", "blood_pressure", "level", "x"), nil).wantFields("type", "level")
	for _, path := range []string{"/hubs/", "/devices/alerts/"} {
		c.wantRoles("GET", path, nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.DataMonitor)
	}

	// With access restricted to care teams, clinicians see their patients' devices and unassigned ones.
	confined := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	foreign := confined.enroll(nil)
	confined.request(authz.Admin, "POST", "/devices/assign/", object{"device_id": "W-1", "patient_id": foreign, "device_type": "scale"}).want(200)
	confined.request(authz.Admin, "POST", "/devices/", object{"device_id": "W-2", "device_type": "scale"}).want(201)
	if list := confined.request(authz.Nurse, "GET", "/devices/", nil).results(); len(list) != 1 || list[0]["device_id"] != "W-2" {
		t.Errorf("the nurse sees %v", list)
	}
	confined.request(authz.Nurse, "GET", "/devices/W-1/", nil).want(403)
	confined.request(authz.Nurse, "POST", "/devices/W-1/unassign/", object{"reason": "x"}).want(403)
	confined.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "W-9", "patient_id": foreign, "device_type": "scale"}).want(403)
}
