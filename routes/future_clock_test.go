package routes_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// The device's clock is ahead: the sender gets 400, and the values are stored, shown, and alert as with a correct clock.
func TestStoryFutureClock(t *testing.T) {
	for _, story := range []struct {
		name, kind, unit, values string
		reported                 object
		alerted                  bool
		parameter                string
	}{
		{"SpO2 70", "pulse_oximetry", "%", `"spo2":70,"pulse":96`, object{"spo2": 70.0, "pulse": 96.0}, true, "spo2"},
		{"SpO2 97", "pulse_oximetry", "%", `"spo2":97,"pulse":72`, object{"spo2": 97.0, "pulse": 72.0}, false, ""},
		{"pulse 28", "blood_pressure", "mmHg", `"systolic":104,"diastolic":58,"pulse":28`, object{"systolic": 104.0, "diastolic": 58.0, "pulse": 28.0}, true, "pulse"},
		{"204/124", "blood_pressure", "mmHg", `"systolic":204,"diastolic":124`, object{"systolic": 204.0, "diastolic": 124.0}, true, "systolic"},
		{"150/95", "blood_pressure", "mmHg", `"systolic":150,"diastolic":95`, object{"systolic": 150.0, "diastolic": 95.0}, false, ""},
		{"glucose 40", "blood_glucose", "mg/dL", `"glucose":40`, object{"glucose_mg_dl": 40.0}, true, "glucose"},
	} {
		for _, fast := range []time.Duration{5*time.Minute + time.Second, time.Hour, 49 * time.Hour} {
			t.Run(story.name+" "+fast.String(), func(t *testing.T) {
				c := newIngestingClinic(t)
				c.t = t
				patient := c.enroll(object{"gateway_patient_id": "gw-1", "primary_provider": c.people[authz.Provider].Number()})
				received, says := c.now, c.now.Add(fast)
				body := measured("D-1", "gw-1", story.kind, story.unit, says, story.values)
				for range 2 {
					if fields := c.postEvent(t, body).want(400, "validation_error"); !strings.Contains(fields.body, `"timestamp"`) {
						t.Errorf("refused for %s", fields.body)
					}
				}
				clocks := c.alertsOf(patient, "device_clock")
				if len(clocks) != 1 {
					t.Fatalf("%d alerts about the clock", len(clocks))
				}
				wantIn(t, clocks[0], object{"level": "warning", "status": "active", "late": false, "observation_id": nil, "value": nil})
				if got := clocks[0]["reported_values"].(object); !maps.Equal(got, story.reported) {
					t.Errorf("reported are %v", got)
				}
				if message := clocks[0]["message"].(string); !strings.Contains(message, "D-1") || !strings.Contains(message, says.Format("2006-01-02T15:04:05Z")) ||
					!strings.Contains(message, received.Format("2006-01-02T15:04:05Z")) {
					t.Errorf("message %q", message)
				}
				id := clocks[0]["quarantine_id"].(string)
				kept := c.request(authz.MA, "GET", "/ingestion/quarantine/"+query("status", "rejected"), nil).results()
				if len(kept) != 1 {
					t.Fatalf("%d are kept", len(kept))
				}
				wantIn(t, kept[0], object{"id": id, "patient_id": patient, "implausible": true, "reason": "validation_error"})
				notified := c.queryRows(t, `SELECT kind || ' ' || severity FROM announcements WHERE alert != '' ORDER BY kind`)
				if !story.alerted {
					wantSame(t, "notified", notified, []string{"device_alert_raised warning"})
					if len(c.statEscalations(t)) != 0 || len(c.alertsOf(patient, "implausible_reading")) != 0 {
						t.Errorf("escalations: %q", c.statEscalations(t))
					}
				} else {
					wantSame(t, "notified", notified, []string{"alert_raised critical", "device_alert_raised warning", "escalation_opened critical"})
					wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
					if message := c.implausible(patient)["message"].(string); !strings.Contains(message, "critical limit") || !strings.Contains(message, "is ahead: it reports") {
						t.Errorf("message %q", message)
					}
					wantIn(t, c.implausible(patient), object{"level": "critical", "status": "active", "late": false, "parameter": story.parameter, "quarantine_id": id})
					if score := c.score(patient); score["risk_level"] != "critical" || score["risk_score"].(float64) < 86 {
						t.Errorf("ranked %v", score)
					}
				}
				if n := c.queryRows(t, `SELECT id FROM observations`); len(n) != 0 {
					t.Errorf("%d readings are stored", len(n))
				}

				// A person confirms the event: it becomes a reading with its arrival time, marked as such.
				c.now = c.now.Add(20 * time.Minute)
				stored := c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Seen on the display."}).want(201).wantAt(object{
					"review_state": "confirmed", "suspect_reason": "device_clock", "confirmed_by": c.people[authz.Nurse].Email(),
					"measured_at": received.Format("2006-01-02T15:04:05Z"), "patient_id": patient, "origin": "device",
				})
				if alerts := append(c.alertsOf(patient, "device_clock"), c.alertsOf(patient, "implausible_reading")...); slices.ContainsFunc(alerts, func(a object) bool { return a["status"] != "resolved" }) {
					t.Errorf("open: %v", alerts)
				}
				if story.alerted && c.score(patient)["risk_level"] != "critical" {
					t.Errorf("ranked %v", c.score(patient))
				}
				if story.alerted != (stored.at("alert_details") != nil && stored.at("alert_details.level") == "critical") {
					t.Errorf("judged %v", stored.body)
				}
				// A copy sent after the measurement time is a duplicate.
				if c.now = says.Add(-time.Minute); fast == time.Hour && story.name != "pulse 28" {
					c.postEvent(t, body).want(200).wantAt(object{"status": "duplicate", "observation_id": stored.at("id")})
				}
			})
		}
	}
}

// A worse value replaces the open clock alert, another value does not. Implausible values also have an alert of their
// own. After the shown value is discarded, the worst of the others alerts.
func TestStoryFutureClockWorseValues(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	says := func(systolic int) {
		t.Helper()
		c.now = c.now.Add(40 * time.Minute)
		c.postEvent(t, cuffEvent("BP-1", "gw-1", systolic, c.now.Add(time.Hour))).want(400)
	}
	open := func() (list []string) {
		t.Helper()
		for _, alert := range c.alertsOf(patient, "device_clock") {
			if alert["status"] == "active" {
				list = append(list, alertSystolic(alert))
			}
		}
		return list
	}
	for _, step := range []struct {
		systolic int
		open     string
	}{{128, "128"}, {124, "128"}, {150, "150"}, {146, "150"}, {170, "170"}, {168, "170"}, {120, "170"}} {
		says(step.systolic)
		wantSame(t, "open", open(), []string{step.open})
	}
	if len(c.statEscalations(t)) != 0 {
		t.Errorf("escalations: %q", c.statEscalations(t))
	}
	says(204) // implausible: an alert of its own
	says(210)
	wantSame(t, "open", open(), []string{"170"})
	if alerted := c.alertsOf(patient, "implausible_reading"); len(alerted) != 1 || alerted[0]["reported_count"] != 2.0 || alertSystolic(alerted[0]) != "210" {
		t.Errorf("alerts are %v", alerted)
	}
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
	var gone []any
	for _, alert := range c.alertsOf(patient, "device_clock") {
		if alert["status"] != "active" {
			gone = append(gone, alert["resolution_reason"])
		}
	}
	if !slices.Equal(gone, []any{"superseded", "superseded"}) {
		t.Errorf("over: %v", gone)
	}
	// The alerted value is discarded: the worst of the others alerts.
	worst := c.alertsOf(patient, "device_clock")[0]["quarantine_id"].(string)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+worst+"/discard/", object{"reason": "The cuff was on the table."}).want(200)
	if rest := open(); len(rest) != 1 {
		t.Errorf("of the rest: %v", rest)
	}
	// The clock is corrected.
	c.now = c.now.Add(time.Hour)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now)).want(200).wantAt(object{"status": "accepted"})
	wantSame(t, "undecided", open(), []string{"168"})
	for _, id := range c.queryRows(t, `SELECT id FROM gateway_events WHERE status = 'rejected'`) {
		c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "The cuff was on the table."}).want(200)
	}
	wantSame(t, "open", open(), nil)
	says(127)
	wantSame(t, "open", open(), []string{"127"})
}

func alertSystolic(alert object) string {
	value, _ := alert["reported_values"].(object)["systolic"].(float64)
	return strconv.Itoa(int(value))
}

// Vendor webhooks behave like the contract's, and parts alert with their reading or alone.
func TestStoryFutureClockFromVendors(t *testing.T) {
	c := newIngestingClinic(t)
	cem, dee := c.enroll(object{"gateway_patient_id": "GW-3"}), c.enroll(nil)
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "tel", "patient_id": dee, "device_type": "pulse_oximeter"}).want(200)
	c.now = c.now.Add(time.Hour)
	at := c.now.Add(90 * time.Minute)
	c.sendVendor(t, "tenovi", "["+pressure("T-1", "GW-3", at, 128)+","+pulse("T-1", "GW-3", at, 28)+"]").want(400)
	wantIn(t, c.implausible(cem), object{"parameter": "pulse", "value": 28.0})
	c.sendVendor(t, "telli", telli("SpO2", "tel", at, `"spo2":70,"pulse":88`)).want(400)
	wantIn(t, c.implausible(dee), object{"parameter": "spo2", "value": 70.0})
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system", "stat open system"})
	for _, patient := range []string{cem, dee} {
		clocks := c.alertsOf(patient, "device_clock")
		if len(clocks) != 1 {
			t.Fatalf("%d alerts about the clock", len(clocks))
		}
		alerted := c.implausible(patient)["quarantine_id"]
		for _, id := range slices.Compact([]any{clocks[0]["quarantine_id"], alerted}) { // the pulse after its pressure reading
			c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id.(string)+"/confirm/", object{"notes": "True."}).want(201).
				wantAt(object{"origin": "device", "review_state": "confirmed", "suspect_reason": "device_clock", "measured_at": c.now.Format(time.RFC3339)})
		}
		if open := c.openAlerts(patient); slices.Contains(open, "device_clock warning") || slices.Contains(open, "implausible_reading critical") {
			t.Errorf("open: %q", open)
		}
	}
	c.wantReadings(t, "pulse_oximetry / 88 ", "blood_pressure 128.0/82.0 28 ")
	// The parts alone.
	later := at.Add(time.Minute)
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-3", later, 126)).want(400)
	c.sendVendor(t, "tenovi", pulse("T-1", "GW-3", later, 36)).want(400)
	if alerted := c.alertsOf(cem, "implausible_reading"); len(alerted) != 2 || alerted[0]["value"] != 36.0 {
		t.Errorf("alerts: %v", alerted)
	}
}

// An event without a patient waits until a person assigns it; a typed future time is a validation error.
func TestStoryFutureClockUnmatched(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	body := measured("OX-1", "nobody", "pulse_oximetry", "%", c.now.Add(time.Hour), `"spo2":70`)
	c.postEvent(t, body).want(400)
	c.wantAlerts(t)
	id := c.queryRows(t, `SELECT id FROM gateway_events`)[0]
	received := c.now.Format(time.RFC3339)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "x"}).want(400, "invalid_state")
	c.now = c.now.Add(10 * time.Minute)
	c.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": patient}).want(200).wantAt(object{"status": "rejected", "patient_id": patient})
	wantIn(t, c.implausible(patient), object{"parameter": "spo2", "value": 70.0})
	if clocks := c.alertsOf(patient, "device_clock"); len(clocks) != 1 || !strings.Contains(clocks[0]["message"].(string), received) {
		t.Errorf("about the clock: %v", clocks)
	}
	typed := object{"patient_id": patient, "systolic": 204, "diastolic": 124, "measured_at": c.now.Add(time.Hour).Format(time.RFC3339)}
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", typed).wantFields("measured_at")
	if kept := c.queryRows(t, `SELECT id FROM gateway_events`); len(kept) != 1 {
		t.Errorf("%d are kept", len(kept))
	}
}

// The gateway retries until the time has passed: the reading is stored once, and the clock alert stays open.
func TestStoryFutureClockResent(t *testing.T) {
	for _, decided := range []string{"", "discard"} {
		rechecked := ""
		c := newIngestingClinic(t, func(e *routes.Engines) {
			e.IngestPipeline.RecheckBilling = func(_ core.App, patientID string, _, _ time.Time) error {
				rechecked += patientID
				return nil
			}
		})
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		says := c.now.Add(7 * time.Minute)
		body := measured("OX-1", "gw-1", "pulse_oximetry", "%", says, `"spo2":70`)
		c.postEvent(t, body).want(400)
		id := c.implausible(patient)["quarantine_id"].(string)
		if decided != "" {
			c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A loose clip."}).want(200)
		}
		c.now = c.now.Add(5 * time.Minute)
		stored := c.postEvent(t, body).want(200).wantAt(object{"status": "accepted"}).at("observation_id").(string)
		c.postEvent(t, body).want(200).wantAt(object{"status": "duplicate", "observation_id": stored})
		if decided != "" {
			c.request(authz.Nurse, "GET", "/ingestion/observations/"+stored+"/", nil).want(200).wantAt(object{"status": "entered_in_error"})
			if rechecked != patient {
				t.Errorf("billing was recounted for %q", rechecked)
			}
			for _, e := range c.statEscalations(t) {
				if e != "stat cancelled system" {
					t.Errorf("an escalation is %s", e)
				}
			}
			continue
		}
		wantSame(t, "open", c.openAlerts(patient), []string{"device_clock warning", "pulse_oximetry critical"})
		wantIn(t, c.implausible(patient), object{"status": "auto_resolved", "resolution_reason": "superseded", "observation_id": stored})
		wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
		if kept := c.queryRows(t, `SELECT status FROM gateway_events`); !slices.Equal(kept, []string{"released"}) {
			t.Errorf("kept: %q", kept)
		}
		c.now = c.now.Add(time.Hour)
		c.postEvent(t, measured("OX-1", "gw-1", "pulse_oximetry", "%", c.now, `"spo2":97`)).want(200)
		if open := c.openAlerts(patient); slices.Contains(open, "device_clock warning") {
			t.Errorf("open: %q", open)
		}
	}
}

// A scale's clock is ahead: a critical weight gain alerts, the spouse's weight does not.
func TestStoryFutureClockOfAScale(t *testing.T) {
	for kg, want := range map[float64][]string{
		80.4: {"device_clock warning"}, 83: {"device_clock warning"}, 86: {"device_clock warning", "implausible_reading critical"},
		62: {"device_clock warning"}, 12: {"device_clock warning", "implausible_reading critical"},
	} {
		c := newIngestingClinic(t)
		patient, at := c.weighedDaily(80, 80.2, 79.9)
		c.now = at
		c.postEvent(t, measured("W-1", "GW-1", "weight", "kg", at.Add(time.Hour), `"weight":`+strconv.FormatFloat(kg, 'f', -1, 64))).want(400)
		wantSame(t, strconv.FormatFloat(kg, 'f', -1, 64), c.openAlerts(patient), want)
		if stat := len(c.statEscalations(t)) != 0; stat != (kg == 86) {
			t.Errorf("%v kg: %q", kg, c.statEscalations(t))
		}
	}
}

// Parts that are in range arrive separately with a clock that is ahead: once confirmed, the pulse is part of its
// pressure reading.
func TestStoryFutureClockPartConfirmed(t *testing.T) {
	for pulseSays, held := range map[int]string{36: "36", 72: "72", 28: "28"} {
		c := newIngestingClinic(t)
		c.enroll(object{"gateway_patient_id": "GW-3"})
		at := c.now.Add(90 * time.Minute)
		var ids []string
		for _, part := range []string{pressure("T-1", "GW-3", at, 126), pulse("T-1", "GW-3", at, pulseSays)} {
			c.sendVendor(t, "tenovi", part).want(400)
			for _, id := range c.queryRows(t, `SELECT id FROM gateway_events`) {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		if len(ids) != 2 {
			t.Fatalf("%d are kept", len(ids))
		}
		for _, id := range ids {
			c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "True."}).want(201)
		}
		c.wantReadings(t, "blood_pressure 126.0/82.0 "+held+" ")
	}
}
