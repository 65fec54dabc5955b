package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A model that a person entered is not replaced by what events of the device state, in either order; both are kept.
func TestStoryReportedModel(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"gateway_patient_id": "GW-1"})
	minute := 0
	later := func() time.Time {
		minute++
		c.now = c.now.Add(time.Minute)
		return c.now
	}
	reading := func(device, model string) {
		t.Helper()
		c.postEvent(t, strings.Replace(cuffEvent(device, "GW-1", 120+minute, later()), `"timestamp"`, fmt.Sprintf(`"device_model":%q,"timestamp"`, model), 1)).want(200)
	}
	connected := func(device, model string) {
		t.Helper()
		c.deviceEvent(t, gateway.Measurement{EventType: gateway.DeviceConnected, DeviceID: device, DeviceModel: model, Timestamp: later()}).want(200)
	}
	want := func(device string, model, reported any) {
		t.Helper()
		c.request(authz.Nurse, "GET", "/devices/"+device+"/", nil).want(200).wantAt(object{"model": model, "reported_model": reported})
		rec := c.requestFHIR(vigiltest.Token(t, c.people[authz.Nurse], c.now), "GET", "/Device?identifier=urn:rpm:device|"+device, "")
		resources := found(parsed(t, rec), "match")
		if name, _ := resources[0]["deviceName"].([]any); len(resources) != 1 || resources[0]["modelNumber"] != model || name[0].(object)["name"] != model {
			t.Errorf("%s: %v", device, resources)
		}
	}
	assign := func(device, model string) {
		t.Helper()
		body := object{"device_id": device, "patient_id": id, "device_type": "blood_pressure"}
		if model != "" {
			body["model"] = model
		}
		c.request(authz.Nurse, "POST", "/devices/assign/", body).want(200)
	}
	assign("BP-1", "Cuff 2")
	reading("BP-1", "BP-7")
	want("BP-1", "Cuff 2", "BP-7")
	connected("BP-1", "BP-8")
	want("BP-1", "Cuff 2", "BP-8")

	reading("BP-2", "BP-7") // discovered
	want("BP-2", "BP-7", "BP-7")
	connected("BP-2", "BP-8")
	want("BP-2", "BP-8", "BP-8")
	assign("BP-2", "")
	want("BP-2", "BP-8", "BP-8")
	assign("BP-2", "Cuff 3")
	reading("BP-2", "BP-9")
	want("BP-2", "Cuff 3", "BP-9")
	assign("BP-2", "Cuff 4")
	want("BP-2", "Cuff 4", "BP-9")

	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "BP-3", "device_type": "blood_pressure", "model": "Cuff 5"}).want(201)
	connected("BP-3", "BP-7")
	want("BP-3", "Cuff 5", "BP-7")
	connected("BP-4", "BP-7")
	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "BP-4", "device_type": "blood_pressure", "model": "Cuff 5"}).want(201)
	want("BP-4", "Cuff 5", "BP-7")

	// null takes back what a person entered; a member that is not sent keeps it.
	body := object{"device_id": "BP-2", "patient_id": id, "device_type": "blood_pressure", "model": nil}
	c.request(authz.Nurse, "POST", "/devices/assign/", body).want(200)
	want("BP-2", "BP-9", "BP-9")
	assign("BP-2", "Cuff 6")
	assign("BP-2", "")
	want("BP-2", "Cuff 6", "BP-9")
}
