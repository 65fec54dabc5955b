package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A device id typed by a portal user is stored with the reading and does not change the device register: it adds no row
// and changes no device in use.
func TestPortalReadingsLeaveTheRegisterAlone(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"gateway_patient_id": "GW-1"})
	portal := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(id))
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "BP-1", "patient_id": id, "device_type": "blood_pressure"}).want(200)
	c.postEvent(t, strings.Replace(cuffEvent("BP-1", "GW-1", 121, c.now), `"timestamp"`, `"battery_level":80,"timestamp"`, 1)).want(200)

	before, register := vigiltest.RowCounts(t, c.app), c.register()
	bodies := map[string]object{
		"blood-pressure": {"systolic": 120, "diastolic": 80}, "weight": {"weight_kg": 80},
		"pulse-oximetry": {"spo2": 98}, "blood-glucose": {"glucose_mg_dl": 110},
	}
	for kind, body := range bodies {
		for i, device := range []string{"BP-1", "invented-" + kind, strings.Repeat("x", 128), "BP-1 "} {
			body["device_id"], body["measured_at"] = device, c.now.Add(time.Duration(i-60)*time.Second).Format(time.RFC3339)
			c.requestAs(portal, "POST", "/ingestion/"+kind+"/", body).want(201).wantAt(object{"device_id": strings.TrimSpace(device), "source": "patient_portal"})
		}
		body["device_id"] = strings.Repeat("x", 129)
		c.requestAs(portal, "POST", "/ingestion/"+kind+"/", body).wantFields("device_id")
	}
	if added := vigiltest.RowsAdded(t, c.app, before); added["devices"] != 0 || added["hubs"] != 0 || added["device_assignments"] != 0 || added["observations"] != 16 {
		t.Errorf("a portal user's readings added %v", added)
	}
	if diff := cmp.Diff(register, c.register()); diff != "" {
		t.Errorf("a portal user's readings changed the register: %s", diff)
	}

	c.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": id, "weight_kg": 81, "device_id": "typed", "measured_at": c.now.Format(time.RFC3339)}).want(201)
	c.request(authz.Nurse, "GET", "/devices/typed/", nil).want(200).wantAt(object{"status": "discovered"})
}

// register returns every stored device row.
func (c *clinic) register() (rows []string) {
	c.t.Helper()
	var stored []dbx.NullStringMap
	if err := c.app.DB().NewQuery(`SELECT * FROM devices ORDER BY device_id`).All(&stored); err != nil {
		c.t.Fatal(err)
	}
	for _, row := range stored {
		rows = append(rows, fmt.Sprint(row))
	}
	return rows
}
