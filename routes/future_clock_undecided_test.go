package routes_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/devices"
)

// weight returns a measurement of the scale.
func weight(at time.Time, kg float64) string {
	return measured("W-1", "GW-1", "weight", "kg", at, `"weight":`+strconv.FormatFloat(kg, 'f', -1, 64))
}

// clocksOf returns the weights that the open clock alerts show, newest first.
func (c *clinic) clocksOf(patient string) (kg []string) {
	c.t.Helper()
	for _, alert := range c.alertsOf(patient, "device_clock") {
		if alert["status"] == "active" {
			values, _ := alert["reported_values"].(object)
			kg = append(kg, fmt.Sprint(values["weight_kg"]))
		}
	}
	return kg
}

// sweepDevices runs the periodic device checks.
func (c *clinic) sweepDevices() {
	c.t.Helper()
	if _, err := devices.NewEngine(devices.Rules{PracticeZone: newYork}).CheckDueDevices(c.app, c.now); err != nil {
		c.t.Fatal(err)
	}
}

// A suspect weight is not ranked with the values of a clock that is ahead: it neither hides the patient's own gain nor
// alerts as one.
func TestStoryFutureClockSuspectWeight(t *testing.T) {
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(80, 80.2, 79.9)
	c.now = at
	c.postEvent(t, weight(at.Add(time.Hour), 62)).want(400) // the spouse, shown first
	wantSame(t, "shown", c.clocksOf(patient), []string{"62"})
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, weight(c.now.Add(time.Hour), 83)).want(400)
	wantSame(t, "a gain of 3 kg replaces the suspect weight", c.clocksOf(patient), []string{"83"})
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, weight(c.now.Add(time.Hour), 62.4)).want(400)
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, weight(c.now.Add(time.Hour), 82.8)).want(400)
	wantSame(t, "a smaller gain does not", c.clocksOf(patient), []string{"83"})
	// Once the shown event is decided, the patient's own gain is the worst of the rest; suspect weights come after it.
	id := c.alertsOf(patient, "device_clock")[0]["quarantine_id"].(string)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "With the coat on."}).want(200)
	wantSame(t, "the rest", c.clocksOf(patient), []string{"82.8"})
	for range 2 { // the latest of equally uncertain weights first
		id = c.alertsOf(patient, "device_clock")[0]["quarantine_id"].(string)
		c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "With the coat on."}).want(200)
		latest := c.alertsOf(patient, "device_clock")[0]
		if message := latest["message"].(string); latest["status"] == "active" && strings.Contains(message, "limit") {
			t.Errorf("message about a suspect weight: %q", message)
		}
	}
	if len(c.statEscalations(t)) != 0 || len(c.alertsOf(patient, "implausible_reading")) != 0 {
		t.Errorf("escalations %q", c.statEscalations(t))
	}
}

// A correct clock, whether the device or its gateway reports it, does not close alerts about undecided values.
func TestStoryClockCorrectedKeepsUndecidedValues(t *testing.T) {
	status := func(c *clinic, kind string) string {
		return fmt.Sprintf(`{"event_type":%q,"device_id":"BP-1","patient_id":"gw-1","timestamp":%q,"battery_level":80}`, kind, c.now.Format(time.RFC3339))
	}
	for name, right := range map[string]func(c *clinic){
		"connected":    func(c *clinic) { c.postEvent(t, status(c, "device.connected")).want(200) },
		"disconnected": func(c *clinic) { c.postEvent(t, status(c, "device.disconnected")).want(200) },
		"battery low":  func(c *clinic) { c.postEvent(t, status(c, "device.battery_low")).want(200) },
		"a reading":    func(c *clinic) { c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now)).want(200) },
		"both": func(c *clinic) {
			c.postEvent(t, status(c, "device.connected")).want(200)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now)).want(200)
			c.postEvent(t, status(c, "device.connected"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			systolic := func() (list []string) {
				for _, alert := range c.alertsOf(patient, "device_clock") {
					if alert["status"] == "active" {
						list = append(list, alertSystolic(alert))
					}
				}
				return list
			}
			for _, value := range []int{168, 172} {
				c.postEvent(t, cuffEvent("BP-1", "gw-1", value, c.now.Add(time.Hour))).want(400)
				c.now = c.now.Add(time.Minute)
			}
			c.now = c.now.Add(20 * time.Minute)
			right(c)
			c.sweepDevices()
			wantSame(t, "still alerted", systolic(), []string{"172"})
			// The shown values are decided; the remaining ones alert, and deciding the last one closes the alert.
			for _, left := range [][]string{{"168"}, nil} {
				id := c.alertsOf(patient, "device_clock")[0]["quarantine_id"].(string)
				c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "Somebody played with it."}).want(200)
				wantSame(t, "left", systolic(), left)
			}
		})
	}
}

// Values with a wrong clock alert until the device measures with a valid time; the gateway's time is not the device's.
func TestStoryWrongClockAndItsGateway(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC))).want(200)
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, fmt.Sprintf(`{"event_type":"device.connected","device_id":"BP-1","timestamp":%q}`, c.now.Format(time.RFC3339))).want(200)
	c.sweepDevices()
	wantSame(t, "open", c.openAlerts(patient), []string{"device_clock warning"})
	// The clock is also ahead before the first alert is answered: this is another fault, and both are shown.
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now.Add(time.Hour))).want(400)
	wantSame(t, "open", c.openAlerts(patient), []string{"device_clock warning", "device_clock warning"})
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 128, c.now)).want(200)
	wantSame(t, "open", c.openAlerts(patient), []string{"device_clock warning"})
}

// A critical gain from a clock that is ahead ranks like one from a correct clock, acknowledged or not, and above another
// orNotOnRecord parameter.
func TestStoryFutureClockGainRanks(t *testing.T) {
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(80, 80.2, 79.9)
	c.now = at
	c.postEvent(t, weight(at.Add(time.Hour), 86)).want(400) // 6.1 kg more, 4.6 is critical: depth 0.1 + 0.9 × 1.5 ÷ 9.2
	wantIn(t, c.implausible(patient), object{"parameter": "weight_change", "value": 6.1})
	if got := c.score(patient)["risk_score"]; got != 89.0 {
		t.Errorf("ranked %v, want 86 + 14 × 0.25", got)
	}
	id := c.implausible(patient)
	c.request(authz.Provider, "POST", "/alerts/"+formatID(id)+"/acknowledge/", nil).want(200)
	c.request(authz.Provider, "PATCH", "/escalations/1/", object{"status": "resolved", "resolution_notes": "Called."}).want(200)
	if got := c.score(patient); got["risk_score"] != 78.0 {
		t.Errorf("acknowledged it ranks %v, want 76 + 9 × 0.25", got)
	}
}

func TestFutureClockGainIsWorseThanAnotherParameter(t *testing.T) {
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(80, 80.2, 79.9)
	c.now = at
	c.postEvent(t, measured("OX-1", "GW-1", "pulse_oximetry", "%", at, `"spo2":84`)).want(200)
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, weight(c.now.Add(time.Hour), 86)).want(400)
	if notified := c.queryRows(t, `SELECT key FROM announcements WHERE kind = 'escalation_opened'`); len(notified) != 2 {
		t.Errorf("notified %q", notified)
	}
	_ = patient
}

// A dismissed value does not alert again when the device resends it, neither after its time has passed nor in another
// envelope.
func TestStoryDismissedDoesNotAlertAgain(t *testing.T) {
	notified := func(c *clinic) []string {
		return c.queryRows(c.t, `SELECT kind || ' ' || key FROM announcements WHERE alert != '' OR kind LIKE 'escalation%' ORDER BY created_at, kind, key`)
	}
	discard := func(c *clinic, id string) {
		c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A loose clip."}).want(200)
	}
	envelope := func(body string) string { return strings.Replace(body, `"unit"`, `"battery_level":60,"unit"`, 1) }
	for _, other := range []bool{false, true} {
		for _, spo2 := range []int{70, 91} {
			t.Run(fmt.Sprint("its time has come ", other, spo2), func(t *testing.T) {
				c := newIngestingClinic(t)
				c.t = t
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				body := measured("OX-1", "gw-1", "pulse_oximetry", "%", c.now.Add(7*time.Minute), fmt.Sprintf(`"spo2":%d`, spo2))
				c.postEvent(t, body).want(400)
				discard(c, c.queryRows(t, `SELECT id FROM gateway_events`)[0])
				before := notified(c)
				if other {
					body = envelope(body)
				}
				c.now = c.now.Add(5 * time.Minute)
				stored := c.postEvent(t, body).want(200).wantAt(object{"status": "accepted"}).at("observation_id").(string)
				c.request(authz.Nurse, "GET", "/ingestion/observations/"+stored+"/", nil).want(200).wantAt(object{"status": "entered_in_error", "fhir_status": nil})
				wantSame(t, "notified", notified(c), before)
				if open := c.openAlerts(patient); len(open) != 0 {
					t.Errorf("open: %q", open)
				}
				if sent := c.queryRows(t, `SELECT id FROM transmissions WHERE status != 'failed'`); len(sent) != 0 {
					t.Errorf("%d deliveries are queued", len(sent))
				}
				c.postEvent(t, body).want(200).wantAt(object{"status": "duplicate", "observation_id": stored})
				wantSame(t, "notified", notified(c), before)
				c.now = c.now.Add(time.Hour)
				c.postEvent(t, measured("OX-1", "gw-1", "pulse_oximetry", "%", c.now, `"spo2":84`)).want(200)
				if len(c.statEscalations(t)) == 0 {
					t.Error("a new value does not alert")
				}
			})
		}
	}
	t.Run("in another envelope", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		body := measured("OX-1", "gw-1", "pulse_oximetry", "%", c.now, `"spo2":48`)
		c.postEvent(t, body).want(400)
		discard(c, c.queryRows(t, `SELECT id FROM gateway_events`)[0])
		before := notified(c)
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, body).want(400)
		c.postEvent(t, envelope(body)).want(400)
		wantSame(t, "notified", notified(c), before)
		wantSame(t, "kept", c.queryRows(t, `SELECT status FROM gateway_events`), []string{"discarded", "discarded"})
		if open := c.openAlerts(patient); len(open) != 0 {
			t.Errorf("open: %q", open)
		}
		c.postEvent(t, strings.Replace(body, `"spo2":48`, `"spo2":47`, 1)).want(400) // another value
		if open := c.openAlerts(patient); !slices.Equal(open, []string{"implausible_reading critical"}) {
			t.Errorf("open: %q", open)
		}
	})
	t.Run("confirmed, in another envelope", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		body := measured("OX-1", "gw-1", "pulse_oximetry", "%", c.now, `"spo2":48`)
		c.postEvent(t, body).want(400)
		id := c.queryRows(t, `SELECT id FROM gateway_events`)[0]
		stored := c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Seen."}).want(201).at("id").(string)
		before := notified(c)
		c.postEvent(t, envelope(body)).want(400)
		wantSame(t, "notified", notified(c), before)
		wantSame(t, "kept", c.queryRows(t, `SELECT status || ' ' || observation FROM gateway_events`), []string{"released " + stored, "released " + stored})
		if open := c.openAlerts(patient); !slices.Equal(open, []string{"pulse_oximetry critical"}) {
			t.Errorf("open: %q", open)
		}
	})
	t.Run("a wrong clock repeats its time", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		body := measured("OX-1", "gw-1", "pulse_oximetry", "%", time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC), `"spo2":48`)
		c.postEvent(t, body).want(400)
		discard(c, c.queryRows(t, `SELECT id FROM gateway_events`)[0])
		c.now = c.now.Add(24 * time.Hour)
		c.postEvent(t, envelope(body)).want(400)
		if open := c.openAlerts(patient); !slices.Contains(open, "implausible_reading critical") {
			t.Errorf("open: %q", open)
		}
	})
	t.Run("a part", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "GW-3"})
		at := c.now.Add(7 * time.Minute)
		c.sendVendor(t, "tenovi", pulse("T-1", "GW-3", at, 36)).want(400)
		discard(c, c.queryRows(t, `SELECT id FROM gateway_events`)[0])
		before := notified(c)
		c.now = at
		c.sendVendor(t, "tenovi", pressure("T-1", "GW-3", at, 126)).want(200)
		c.sendVendor(t, "tenovi", pulse("T-1", "GW-3", at, 36)).want(200)
		wantSame(t, "notified", notified(c), before)
		c.wantReadings(t, "blood_pressure 126.0/82.0 - ")
		if open := c.openAlerts(patient); slices.Contains(open, "pulse critical") {
			t.Errorf("open: %q", open)
		}
	})
}
