package routes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// implausibleCuff is an implausible reading of a cuff.
func implausibleCuff(c *clinic, device string, systolic, diastolic int) string {
	return measured(device, "gw-1", "blood_pressure", "mmHg", c.now, fmt.Sprintf(`"systolic":%d,"diastolic":%d`, systolic, diastolic))
}

func (c *clinic) decideEvent(what, id string) reply {
	c.t.Helper()
	return c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/"+what+"/", object{"reason": "A broken cuff.", "notes": "Felt."})
}

// A cuff that sends 200 implausible values within an hour raises one alert with the worst value, the latest and the
// count. The care team is notified once, each event is kept, and the alert closes with the last decision.
func TestStoryFloodOfImplausibleValues(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	for i := range 200 {
		c.postEvent(t, implausibleCuff(c, "BP-1", 500-i%3, 90+i%7)).want(400)
		c.now = c.now.Add(18 * time.Second)
	}
	alert := c.implausible(patient)
	wantIn(t, alert, object{"status": "active", "level": "critical", "parameter": "systolic", "value": 500.0, "reported_count": 200.0})
	if got := alert["reported_values"].(object); got["systolic"] != 500.0 {
		t.Errorf("the worst are %v", got)
	}
	if got := alert["latest_values"].(object); !maps.Equal(got, object{"systolic": 499.0, "diastolic": 93.0}) {
		t.Errorf("the latest are %v", got)
	}
	if message := alert["message"].(string); !strings.Contains(message, "Reported 200 times") || !strings.Contains(message, "Systolic 499 mmHg") {
		t.Errorf("message %q", message)
	}
	wantSame(t, "notified", c.queryRows(t, `SELECT kind FROM announcements WHERE alert != '' ORDER BY kind`), []string{"alert_raised", "escalation_opened"})
	kept := c.queryRows(t, `SELECT id FROM gateway_events WHERE status = 'rejected' AND implausible ORDER BY received_at`)
	if len(kept) != 200 {
		t.Fatalf("%d are kept", len(kept))
	}
	if score := c.score(patient); score["unacknowledged_alerts"] != 1.0 || score["risk_score"].(float64) < 99 {
		t.Errorf("ranked %v", score)
	}
	// The gateway retries.
	c.now = c.now.Add(-18 * time.Second)
	c.postEvent(t, implausibleCuff(c, "BP-1", 499, 93)).want(400)
	wantIn(t, c.implausible(patient), object{"reported_count": 200.0})
	// One is confirmed and the others are discarded one by one: the escalation stays for the remaining ones.
	stored := c.decideEvent("confirm", kept[0]).want(201).wantAt(object{"systolic": 500.0, "review_state": "confirmed"}).at("id")
	wantIn(t, c.implausible(patient), object{"status": "active", "reported_count": 199.0, "observation_id": nil})
	for i, id := range kept[1:] {
		if i%50 == 0 || i > 195 {
			if got := c.statEscalations(t); !slices.Equal(got, []string{"stat open system"}) {
				t.Fatalf("after %d: %q", i, got)
			}
			wantIn(t, c.implausible(patient), object{"status": "active", "reported_count": float64(199 - i)})
		}
		c.decideEvent("discard", id).want(200)
	}
	wantIn(t, c.implausible(patient), object{"status": "resolved", "resolution_reason": "withdrawn"})
	wantSame(t, "the confirmed one remains", c.statEscalations(t), []string{"stat open system"})
	c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", stored), object{"reason": "The same cuff."}).want(200)
	wantSame(t, "none remains", c.statEscalations(t), []string{"stat cancelled system"})
}

// The alert notifies again when a value is worse by a tenth of the distance between the bound and the end of the range,
// gradually or at once, and on the other side.
func TestStoryFloodNotifiesWhenWorse(t *testing.T) {
	for name, values := range map[string]struct {
		systolic []int
		notified []int // values that notify
		worst    float64
	}{
		"the same":       {[]int{320, 320, 320, 320}, []int{0}, 320},
		"better":         {[]int{320, 310, 305}, []int{0}, 320},
		"a tenth":        {[]int{320, 331, 332, 333}, []int{0, 2}, 333},
		"gradually":      {[]int{320, 326, 331, 333, 340, 345}, []int{0, 3, 5}, 345},
		"the other side": {[]int{320, 58, 320, 57}, []int{0, 1}, 320},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			var notified []int
			before := 0
			for i, systolic := range values.systolic {
				c.now = c.now.Add(time.Minute)
				c.postEvent(t, implausibleCuff(c, "BP-1", systolic, 50)).want(400)
				if n := len(c.queryRows(t, `SELECT key FROM announcements WHERE kind = 'escalation_opened'`)); n != before {
					notified, before = append(notified, i), n
				}
			}
			if !slices.Equal(notified, values.notified) {
				t.Errorf("notified at %v, want %v", notified, values.notified)
			}
			wantIn(t, c.implausible(patient), object{"reported_count": float64(len(values.systolic))})
			if worst := c.implausible(patient)["reported_values"].(object)["systolic"]; name != "the other side" && worst != values.worst {
				t.Errorf("the worst is %v", worst)
			}
		})
	}
}

// A parameter without a critical bound notifies again when a value is further out by a tenth of the range, and is never
// stat.
func TestFloodOfWeights(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	for i, kg := range []int{620, 640, 667, 669, 620, 6, 5, 640} {
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, measured("SC-1", "gw-1", "weight", "kg", c.now, fmt.Sprintf(`"weight":%d`, kg))).want(400)
		if notified, want := len(c.queryRows(t, `SELECT key FROM announcements WHERE kind = 'alert_raised'`)), []int{1, 1, 1, 2, 2, 3, 3, 3}[i]; notified != want {
			t.Errorf("%d kg: notified %d times, want %d", kg, notified, want)
		}
	}
	wantIn(t, c.implausible(patient), object{"reported_count": 8.0, "parameter": "weight"})
	if len(c.statEscalations(t)) != 0 {
		t.Errorf("escalations: %q", c.statEscalations(t))
	}
}

// These get an alert of their own: another device, parameter or patient, a typed value, a late one, and a value after
// the first alert was acknowledged.
func TestFloodsKeptSeparate(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	n := 0
	more := func(what string, send func()) {
		t.Helper()
		for range 2 {
			c.now = c.now.Add(time.Minute)
			send()
		}
		if n++; len(c.alertsOf(patient, "implausible_reading")) != n {
			t.Errorf("%s: %d alerts, want %d", what, len(c.alertsOf(patient, "implausible_reading")), n)
		}
	}
	more("the first", func() { c.postEvent(t, implausibleCuff(c, "BP-1", 500, 90)).want(400) })
	more("another device", func() { c.postEvent(t, implausibleCuff(c, "BP-2", 500, 90)).want(400) })
	more("another parameter", func() {
		c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now, `"systolic":104,"diastolic":58,"pulse":28`)).want(400)
	})
	more("typed", func() {
		c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
			"patient_id": patient, "device_id": "BP-1", "systolic": 500, "diastolic": 90, "measured_at": c.now.Format(time.RFC3339),
		}).wantFields("systolic")
	})
	more("late", func() {
		c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now.AddDate(0, 0, -3), `"systolic":500,"diastolic":90`)).want(400)
	})
	for _, alert := range c.alertsOf(patient, "implausible_reading") {
		c.request(authz.Provider, "POST", "/alerts/"+formatID(alert)+"/acknowledge/", nil).want(200)
	}
	more("acknowledged", func() { c.postEvent(t, implausibleCuff(c, "BP-1", 500, 90)).want(400) })
	other := c.enroll(object{"gateway_patient_id": "gw-2"})
	c.postEvent(t, strings.Replace(implausibleCuff(c, "BP-3", 500, 90), "gw-1", "gw-2", 1)).want(400)
	c.implausible(other)
	// An escalation closed without an answer: the next value opens another.
	for i, e := range c.statEscalations(t) {
		if e == "stat open system" {
			c.request(authz.Provider, "PATCH", fmt.Sprintf("/escalations/%d/", i+1), object{"status": "resolved", "resolution_notes": "Called."}).want(200)
		}
	}
	before := len(c.statEscalations(t))
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, implausibleCuff(c, "BP-1", 500, 90)).want(400)
	if len(c.statEscalations(t)) != before+1 {
		t.Errorf("escalations: %q", c.statEscalations(t))
	}
}

// Vendor events, clocks that are ahead and late events are aggregated in the same way.
func TestFloodsOfAllKinds(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "GW-3"})
	for range 5 {
		c.now = c.now.Add(time.Minute)
		c.sendVendor(t, "tenovi", pressure("T-1", "GW-3", c.now, 500)).want(400)
	}
	wantIn(t, c.implausible(patient), object{"reported_count": 5.0})
	for range 5 {
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, measured("OX-1", "GW-3", "pulse_oximetry", "%", c.now.Add(time.Hour), `"spo2":70`)).want(400)
	}
	raised := c.alertsOf(patient, "implausible_reading")
	if len(raised) != 2 || raised[0]["reported_count"] != 5.0 {
		t.Fatalf("alerts are %v", raised)
	}
	// A decision about one event does not notify of the others again.
	c.decideEvent("discard", raised[0]["quarantine_id"].(string)).want(200)
	wantIn(t, c.alertsOf(patient, "implausible_reading")[0], object{"reported_count": 4.0, "status": "active"})
	if clocks := c.clocksOpen(patient); len(clocks) != 0 {
		t.Errorf("about the clock: %v", clocks)
	}
	// Late events with a newer reading: one alert, closed at once.
	other := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.worked(other, "BP-2")
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 128, c.now)).want(200)
	for i := range 6 {
		c.postEvent(t, measured("BP-2", "gw-1", "blood_pressure", "mmHg", c.now.AddDate(0, 0, -3).Add(time.Duration(i)*time.Minute), `"systolic":500,"diastolic":90`)).want(400)
	}
	wantIn(t, c.implausible(other), object{"status": "auto_resolved", "resolution_reason": "superseded", "late": true, "reported_count": 6.0})
}

// clocksOpen returns the open alerts about clocks.
func (c *clinic) clocksOpen(patient string) (open []object) {
	c.t.Helper()
	for _, alert := range c.alertsOf(patient, "device_clock") {
		if alert["status"] == "active" {
			open = append(open, alert)
		}
	}
	return open
}

// The aggregated events of a patient who was archived in the meantime are still decided one by one.
func TestFloodOfAnArchivedPatient(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	for range 3 {
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, implausibleCuff(c, "BP-1", 500, 90)).want(400)
	}
	kept := c.queryRows(t, `SELECT id FROM gateway_events ORDER BY received_at`)
	c.request(authz.Provider, "POST", "/patients/"+patient+"/archive/", object{"reason": "moved", "confirm": true}).want(200)
	c.decideEvent("discard", kept[0]).want(200)
	c.decideEvent("confirm", kept[1]).want(400)
	c.request(authz.Provider, "POST", "/patients/"+patient+"/unarchive/", object{}).want(200)
	c.decideEvent("discard", kept[1]).want(200)
	wantIn(t, c.implausible(patient), object{"reported_count": 1.0})
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, implausibleCuff(c, "BP-1", 500, 90)).want(400)
	wantIn(t, c.alertsOf(patient, "implausible_reading")[0], object{"reported_count": 1.0, "status": "active"}) // the archiving closed the first
	c.decideEvent("confirm", kept[2]).want(201).wantAt(object{"systolic": 500.0})
	wantSame(t, "open", c.openAlerts(patient), []string{"blood_pressure critical", "implausible_reading critical"})
}

// Readings in range and implausible events alternate on two devices, and are retracted or decided: no alert remains.
func TestFloodBesideReadings(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	var stored []string
	for i := range 6 {
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, implausibleCuff(c, "BP-1", 320+i, 90)).want(400)
		stored = append(stored, c.postEvent(t, cuffEvent("BP-2", "gw-1", 204, c.now)).want(200).at("observation_id").(string))
	}
	for i, id := range c.queryRows(t, `SELECT id FROM gateway_events ORDER BY received_at`) {
		if i%2 == 0 {
			c.decideEvent("discard", id).want(200)
			continue
		}
		stored = append(stored, c.decideEvent("confirm", id).want(201).at("id").(string))
	}
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
	for _, id := range stored {
		c.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "A broken cuff."}).want(200)
	}
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat cancelled system"})
	if open := c.openAlerts(patient); len(open) != 0 {
		t.Errorf("open: %q", open)
	}
	if score := c.score(patient); score["unacknowledged_alerts"] != 0.0 || score["risk_level"] == "critical" {
		t.Errorf("ranked %v", score)
	}
}

// The worst value stays the worst when another event is decided, however many followed.
func TestFloodKeepsTheWorst(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	for i := range 203 {
		c.postEvent(t, implausibleCuff(c, "BP-1", []int{500, 310}[min(i, 1)], 90)).want(400)
		c.now = c.now.Add(time.Minute)
	}
	kept := c.queryRows(t, `SELECT id FROM gateway_events ORDER BY received_at`)
	c.decideEvent("discard", kept[202]).want(200)
	wantIn(t, c.implausible(patient), object{"reported_count": 202.0, "value": 500.0, "quarantine_id": kept[0]})
	c.decideEvent("discard", kept[0]).want(200)
	wantIn(t, c.implausible(patient), object{"reported_count": 201.0, "value": 310.0, "quarantine_id": kept[201]})
}

// The latest of the aggregated values is the one measured last, in any order of arrival.
func TestFloodOutOfOrder(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	at := c.now
	for _, x := range []struct {
		systolic int
		ago      time.Duration
		latest   float64
	}{{400, time.Hour, 400}, {420, 10 * time.Minute, 420}, {450, 2 * time.Hour, 420}, {410, 90 * time.Minute, 420}, {430, 0, 430}} {
		c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", at.Add(-x.ago), fmt.Sprintf(`"systolic":%d,"diastolic":90`, x.systolic))).want(400)
		alert := c.implausible(patient)
		if got := alert["latest_values"].(object)["systolic"]; got != x.latest {
			t.Errorf("after %d the latest is %v, want %v", x.systolic, got, x.latest)
		}
		if message := alert["message"].(string); alert["reported_count"] != 1.0 && !strings.Contains(message, fmt.Sprintf("the latest: Systolic %.0f mmHg", x.latest)) {
			t.Errorf("message %q", message)
		}
	}
	wantIn(t, c.implausible(patient), object{"value": 450.0, "reported_count": 5.0})
}
