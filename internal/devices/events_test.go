package devices_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestConnectionStateFollowsNewestEvent(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(nil)
	w.assign("BP-1", patient, "bp_monitor", time.Time{})
	start := w.now
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	for _, step := range []struct {
		what        string
		event       gateway.Event
		status, hub string
	}{
		{"connected", gateway.Event{Type: gateway.DeviceConnected, DeviceID: "BP-1", HubID: "H1", At: at(10), DeviceModel: "M1"}, "connected", "H1"},
		{"older", gateway.Event{Type: gateway.DeviceDisconnected, DeviceID: "BP-1", HubID: "H0", At: at(5)}, "connected", "H1"},
		{"newer", gateway.Event{Type: gateway.DeviceDisconnected, DeviceID: "BP-1", At: at(20)}, "disconnected", "H1"},
		{"in between", gateway.Event{Type: gateway.DeviceConnected, DeviceID: "BP-1", HubID: "H2", At: at(15)}, "disconnected", "H2"},
		{"again", gateway.Event{Type: gateway.DeviceConnected, DeviceID: "BP-1", HubID: "H3", At: at(30)}, "connected", "H3"},
	} {
		w.handle(step.event)
		if d := w.device("BP-1"); d.Status() != step.status || d.HubID() != step.hub {
			t.Errorf("%s: %s on %s, want %s on %s", step.what, d.Status(), d.HubID(), step.status, step.hub)
		}
	}
	w.handle(gateway.Event{Type: gateway.DeviceConnected, DeviceID: "NEW", HubID: "H1", At: at(1)})
	if d := w.device("NEW"); d.Status() != collections.DeviceConnected || d.HubID() != "H1" {
		t.Errorf("an unknown device is %s on %s", d.Status(), d.HubID())
	}
	for id, registered := range map[string]bool{"NEW": false, "BP-1": true} {
		_, err := devices.Register(w.app, devices.Registration{DeviceID: id, Type: "weight"}, nurse, w.now)
		if (err != nil) != registered {
			t.Errorf("register %s: %v", id, err)
		}
	}
	// A reading shows that the device is connected, unless it is older than the disconnect event.
	w.handle(gateway.Event{Type: gateway.DeviceDisconnected, DeviceID: "BP-1", At: at(40)})
	w.now = at(60)
	w.measure(patient, "BP-1", 80, at(35), devices.GatewayReport{})
	if d := w.device("BP-1"); d.Status() != "disconnected" || !d.LastReadingAt().Equal(at(35)) {
		t.Errorf("after a late reading: %s, last reading %s", d.Status(), d.LastReadingAt())
	}
	w.measure(patient, "BP-1", 81, at(50), devices.GatewayReport{HubID: "H9", Model: "M2", Signal: level(-60)})
	if d := w.device("BP-1"); d.Status() != "connected" || d.HubID() != "H9" || d.ReportedModel() != "M2" || d.GetFloat("signal_strength") != -60 {
		t.Errorf("after a reading: %s on %s", d.Status(), d.HubID())
	}
	w.measure(patient, "BP-1", 81.2, at(45), devices.GatewayReport{HubID: "H8", Model: "M1"})
	if d := w.device("BP-1"); d.HubID() != "H9" || d.ReportedModel() != "M2" || !d.LastReadingAt().Equal(at(50)) {
		t.Errorf("an older reading moves the device to %s", d.HubID())
	}
	w.wantAlerts("connections")
}

func TestBatteryOfMeasurementsAndEvents(t *testing.T) {
	w := newFixture(t)
	provider := vigiltest.User(t, w.app, authz.Provider)
	vigiltest.User(t, w.app, authz.Nurse) // in no care team
	patient := w.patient(dbx.Params{"primary_provider": provider.Id})
	w.assign("S-1", patient, "scale", time.Time{})
	orders := w.count("device_orders", "TRUE")
	minute := 0
	next := func() time.Time { minute++; w.now = w.now.Add(time.Minute); return w.now }

	if w.measure(patient, "S-1", 80, next(), devices.GatewayReport{BatteryLevel: level(84)}) {
		t.Error("a full battery needs attention")
	}
	w.measure(patient, "S-1", 80, next(), devices.GatewayReport{BatteryLevel: level(18)})
	w.wantAlerts("low", "device_battery warning active")
	w.wantCount("mails", "template = 'battery_low' AND user = '"+provider.Id+"'", 1)
	if w.measure(patient, "S-1", 80, next(), devices.GatewayReport{BatteryLevel: level(17)}) {
		t.Error("an announced level needs attention")
	}
	w.handle(gateway.Event{Type: gateway.DeviceBatteryLow, DeviceID: "S-1", At: next(), BatteryLevel: level(9)})
	w.wantAlerts("critical", "device_battery warning active", "device_battery critical active")
	w.wantCount("device_orders", "kind = 'replacement' AND status = 'requested'", 1)
	w.wantCount("device_orders", "TRUE", orders+1)
	w.wantCount("announcements", "kind = 'device_alert_raised' AND severity = 'critical'", 1)
	w.wantCount("alerts", "value = 9 AND threshold = 10", 1)
	w.wantCount("mails", "TRUE", 2)

	late := w.now.Add(-90 * time.Second)
	w.measure(patient, "S-1", 80, late, devices.GatewayReport{BatteryLevel: level(90)})
	w.handle(gateway.Event{Type: gateway.DeviceBatteryLow, DeviceID: "S-1", At: late, BatteryLevel: level(95)})
	w.wantAlerts("older levels", "device_battery warning active", "device_battery critical active")

	w.measure(patient, "S-1", 80, next(), devices.GatewayReport{BatteryLevel: level(25)})
	recovered := []string{
		"device_battery warning auto_resolved", "device_battery critical auto_resolved", "device_info normal resolved", "device_info normal resolved",
	}
	w.wantAlerts("above 20", recovered...)
	if w.measure(patient, "S-1", 80, next(), devices.GatewayReport{BatteryLevel: level(24)}) {
		t.Error("a recovered battery needs attention repeatedly")
	}
	w.measure(patient, "S-1", 80, next(), devices.GatewayReport{BatteryLevel: level(5)})
	w.wantAlerts("same discharge", recovered...)
	w.measure(patient, "S-1", 80, next(), devices.GatewayReport{BatteryLevel: level(100)})
	w.handle(gateway.Event{Type: gateway.DeviceBatteryLow, DeviceID: "S-1", At: next()})
	w.wantAlerts("next discharge, no level given", append(recovered, "device_battery warning active")...)
	if d := w.device("S-1"); d.BatteryLevel() != nil || d.BatteryState() != "low" {
		t.Errorf("the battery is %v, %s", d.BatteryLevel(), d.BatteryState())
	}
	w.wantCount("alerts", "type = 'device_battery' AND value IS NULL", 1)
	w.wantCount("audit_log", "event = 'alert.create'", 5)
	w.wantCount("mails", "TRUE", 3)
}

// The check does what a crash prevented after a commit, once.
func TestCheckDueDevicesCatchesUp(t *testing.T) {
	w := newFixture(t)
	patient := w.patient(nil)
	w.assign("S-1", patient, "scale", time.Time{})
	kg := 80.0
	w.ok(w.app.RunInTransaction(func(tx core.App) error {
		_, err := devices.RecordSighting(tx, weightReading("S-1", &kg, w.now), devices.GatewayReport{ByGateway: true, HubID: "H1", BatteryLevel: level(5)}, w.now)
		return err
	}))
	w.wantAlerts("before")
	for _, want := range []int{1, 0} {
		n, err := w.engine.CheckDueDevices(w.app, w.now)
		w.ok(err)
		if n != want {
			t.Errorf("attended to %d devices, want %d", n, want)
		}
	}
	w.wantAlerts("after", "device_battery critical active")
	if got := w.hub("H1"); got != "online" {
		t.Errorf("the hub is %q", got)
	}
}

// An unassigned device alerts no one until it is assigned.
func TestBatteryOfUnassignedDevice(t *testing.T) {
	w := newFixture(t)
	w.handle(gateway.Event{Type: gateway.DeviceBatteryLow, DeviceID: "S-1", At: w.now, BatteryLevel: level(15)})
	w.wantAlerts("discovered")
	first, second := w.patient(nil), w.patient(nil)
	w.assign("S-1", first, "scale", time.Time{})
	w.wantAlerts("assigned", "device_battery warning active")
	w.now = w.now.Add(time.Hour)
	_, err := devices.Unassign(w.app, "S-1", "Moved away", nurse, w.now)
	w.ok(err)
	w.assign("S-1", second, "scale", time.Time{})
	w.wantAlerts("in other hands", "device_battery warning auto_resolved", "device_battery warning active")
}

func TestHubs(t *testing.T) {
	w := newFixture(t)
	first, second, archived := w.patient(nil), w.patient(nil), w.patient(nil)
	for device, patient := range map[string]string{"A-1": first, "A-2": first, "B-1": second, "C-1": archived} {
		w.assign(device, patient, "scale", time.Time{})
		w.handle(gateway.Event{Type: gateway.DeviceConnected, DeviceID: device, HubID: "H1", At: w.now})
	}
	_, err := archivePatient(w, archived)
	w.ok(err)
	started := w.now
	at := func(minutes int) time.Time { return started.Add(time.Duration(minutes) * time.Minute) }
	off := []string{"hub_offline warning active", "hub_offline warning active"}
	back := []string{
		"hub_offline warning auto_resolved", "hub_offline warning auto_resolved", "device_info normal resolved", "device_info normal resolved",
	}

	w.handle(gateway.Event{Type: gateway.HubOffline, HubID: "H1", At: at(-1)})
	w.wantAlerts("older than the last word")
	w.now = at(5)
	w.handle(gateway.Event{Type: gateway.HubOffline, HubID: "H1", At: at(5)})
	w.handle(gateway.Event{Type: gateway.HubOffline, HubID: "H1", At: at(6)})
	w.wantAlerts("offline", off...)
	w.wantCount("announcements", "kind = 'device_alert_raised'", 2)
	w.handle(gateway.Event{Type: gateway.HubHeartbeat, HubID: "H1", At: at(4)})
	w.wantAlerts("a heartbeat from before", off...)
	w.handle(gateway.Event{Type: gateway.HubHeartbeat, HubID: "H1", At: at(7)})
	w.wantAlerts("back", back...)

	check := func(what string, listening, now time.Time, want int) {
		t.Helper()
		n, err := devices.CheckHubs(w.app, listening, now)
		w.ok(err)
		if n != want {
			t.Errorf("%s: %d hubs fell silent, want %d", what, n, want)
		}
	}
	check("15 minutes exactly", started, at(22), 0)
	check("our own silence", at(10), at(23), 0)
	w.now = at(23)
	w.measure(first, "A-1", 80, at(20), devices.GatewayReport{HubID: "H1"})
	check("a measurement counts", started, at(23), 0)
	w.now = at(36)
	check("silent", started, at(36), 1)
	check("announced once", started, at(37), 0)
	w.wantAlerts("silent", append(back, off...)...)
	w.measure(second, "B-1", 70, at(36), devices.GatewayReport{HubID: "H1"})
	if got := w.hub("H1"); got != "online" {
		t.Errorf("after a reading the hub is %s", got)
	}
	w.handle(gateway.Event{Type: gateway.DeviceConnected, DeviceID: "Z-1", HubID: "QUIET", At: at(36)})
	check("a hub that sends no heartbeats is not watched", started, at(50), 0)
	check("nor one that stopped long ago", started, at(7*24*60+60), 0)
}
