package routes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// measured is a measurement of the contract's gateway.
func measured(device, patient, kind, unit string, at time.Time, values string) string {
	return fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":%q,"measurement_type":%q,"values":{%s},"unit":%q,"timestamp":%q}`,
		device, patient, kind, values, unit, at.Format(time.RFC3339))
}

// alertsOf returns a patient's alerts of a type, newest first.
func (c *clinic) alertsOf(patient, alertType string) []object {
	c.t.Helper()
	return c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "type", alertType, "page_size", "100"), nil).results()
}

// implausible returns the patient's only alert about implausible values.
func (c *clinic) implausible(patient string) object {
	c.t.Helper()
	list := c.alertsOf(patient, "implausible_reading")
	if len(list) != 1 {
		c.t.Fatalf("%d alerts: %v", len(list), list)
	}
	return list[0]
}

func wantIn(t testing.TB, got, want object) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}

func (c *clinic) statEscalations(t testing.TB) []string {
	t.Helper()
	return c.queryRows(t, `SELECT priority || ' ' || status || ' ' || created_by FROM escalations ORDER BY id`)
}

// score returns the patient's triage row.
func (c *clinic) score(patient string) object {
	c.t.Helper()
	for _, p := range c.request(authz.Nurse, "GET", "/triage/patients/?page_size=100", nil).results() {
		if p["patient_id"] == patient {
			return object{"risk_score": p["risk_score"], "risk_level": p["risk_level"], "unacknowledged_alerts": p["unacknowledged_alerts"], "active_escalations": p["active_escalations"]}
		}
	}
	c.t.Fatalf("%s is not on the list", patient)
	return nil
}

var implausibleStories = []struct {
	name, kind, unit, values, field string
	reported                        object
	stat                            bool
}{
	{"pulse 28 with 104/58", "blood_pressure", "mmHg", `"systolic":104,"diastolic":58,"pulse":28`, "values.pulse", object{"systolic": 104.0, "diastolic": 58.0, "pulse": 28.0}, true},
	{"SpO2 48", "pulse_oximetry", "%", `"spo2":48,"pulse":96`, "values.spo2", object{"spo2": 48.0, "pulse": 96.0}, true},
	{"systolic 55", "blood_pressure", "mmHg", `"systolic":55,"diastolic":34`, "values.systolic", object{"systolic": 55.0, "diastolic": 34.0}, true},
	{"glucose 650", "blood_glucose", "mg/dL", `"glucose":650`, "values.glucose", object{"glucose_mg_dl": 650.0}, true},
	{"glucose in mmol/L", "blood_glucose", "mmol/L", `"glucose":36`, "values.glucose", object{"glucose_mg_dl": 649.0}, true},
	{"systolic 500 of a fuzzer", "blood_pressure", "mmHg", `"systolic":500,"diastolic":90`, "values.systolic", object{"systolic": 500.0, "diastolic": 90.0}, true},
	{"41.5 °F", "body_temperature", "degF", `"temperature":41.5`, "values.temperature", object{"temperature_c": 5.28}, true},
	{"12 kg", "weight", "kg", `"weight":12`, "values.weight", object{"weight_kg": 12.0}, false},
	{"1,200 lb", "weight", "lb", `"weight":1200`, "values.weight", object{"weight_kg": 544.31}, false},
	{"SpO2 104", "pulse_oximetry", "%", `"spo2":104`, "values.spo2", object{"spo2": 104.0}, false},
}

// The gateway gets 400, and the care team is notified of the implausible values at once, once; a value beyond a critical
// bound is stat.
func TestStoryImplausibleByWebhook(t *testing.T) {
	for _, story := range implausibleStories {
		t.Run(story.name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1", "primary_provider": c.people[authz.Provider].Number()})
			before := c.score(patient)
			body := measured("D-1", "gw-1", story.kind, story.unit, c.now.Add(-time.Minute), story.values)
			for range 3 { // the gateway retries
				c.postEvent(t, body).wantFields(story.field)
				c.now = c.now.Add(time.Minute)
			}
			alert := c.implausible(patient)
			wantIn(t, alert, object{"level": "critical", "status": "active", "acknowledged": false, "late": false, "observation_id": nil})
			if got := alert["reported_values"].(object); !maps.Equal(got, story.reported) {
				t.Errorf("reported are %v", got)
			}
			if alert["quarantine_id"] == nil || alert["parameter"] == nil || alert["value"] == nil || alert["threshold"] == nil {
				t.Errorf("alert message %v", alert)
			}
			want := []string{"stat open system"}
			if !story.stat {
				want = nil
			}
			if got := c.statEscalations(t); !slices.Equal(got, want) {
				t.Errorf("escalations: %q", got)
			}
			notified := c.queryRows(t, `SELECT kind || ' ' || severity FROM announcements WHERE alert != '' ORDER BY kind`)
			if want := []string{"alert_raised critical", "escalation_opened critical"}[:1+len(want)]; !slices.Equal(notified, want) {
				t.Errorf("notified: %q", notified)
			}
			if level := c.score(patient)["risk_level"]; level != "critical" {
				t.Errorf("ranked %v", c.score(patient))
			}
			if n := c.queryRows(t, `SELECT id FROM observations`); len(n) != 0 {
				t.Errorf("%d readings are stored", len(n))
			}
			id := alert["quarantine_id"].(string)
			kept := c.request(authz.MA, "GET", "/ingestion/quarantine/"+query("status", "rejected"), nil).results()
			if len(kept) != 1 {
				t.Fatalf("%d are kept", len(kept))
			}
			wantIn(t, kept[0], object{"id": id, "source": "gateway", "patient_id": patient, "implausible": true, "reason": "validation_error"})

			// Discarded: the values do not count.
			discard := "/ingestion/quarantine/" + id + "/discard/"
			c.request(authz.MA, "POST", discard, object{"reason": "x"}).want(403)
			c.request(authz.Nurse, "POST", discard, object{"reason": "The cuff was on the table."}).want(200).wantAt(object{"status": "discarded", "patient_id": patient})
			wantIn(t, c.implausible(patient), object{
				"status": "resolved", "resolution_reason": "withdrawn", "resolved_by": c.people[authz.Nurse].Email(), "acknowledged": true,
			})
			for _, e := range c.statEscalations(t) {
				if e != "stat cancelled system" {
					t.Errorf("an escalation is %s", e)
				}
			}
			if got := c.score(patient); !maps.Equal(got, before) {
				t.Errorf("ranked %v, before %v", got, before)
			}
			c.postEvent(t, body).wantFields(story.field)
			c.request(authz.Nurse, "POST", discard, object{"reason": "x"}).want(400, "invalid_state")
			c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "x"}).want(400, "invalid_state")
			c.implausible(patient)
		})
	}
}

// A person confirms the values: they become one reading as reported, including the plausible part, and are evaluated
// like any other.
func TestStoryImplausibleConfirmed(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	at := c.now.Add(-time.Minute)
	body := measured("BP-1", "gw-1", "blood_pressure", "mmHg", at, `"systolic":104,"diastolic":58,"pulse":28`)
	c.postEvent(t, body).wantFields("values.pulse")
	alert := c.implausible(patient)
	wantIn(t, alert, object{"parameter": "pulse", "value": 28.0, "threshold": 40.0})
	if message := alert["message"].(string); !strings.Contains(message, "Pulse 28 bpm") || !strings.Contains(message, "Systolic 104 mmHg, Diastolic 58 mmHg") {
		t.Errorf("alert message %q", message)
	}
	confirm := "/ingestion/quarantine/" + alert["quarantine_id"].(string) + "/confirm/"
	c.request(authz.Nurse, "POST", confirm, object{}).wantFields("notes")
	for _, role := range []authz.Role{authz.MA, authz.DataMonitor, authz.Patient} {
		c.request(role, "POST", confirm, object{"notes": "x"}).want(403)
	}
	c.now = c.now.Add(10 * time.Minute)
	stored := c.request(authz.Nurse, "POST", confirm, object{"notes": "By palpation 28, too. Ambulance called."}).want(201).wantAt(object{
		"patient_id": patient, "systolic": 104.0, "diastolic": 58.0, "pulse": 28.0, "source": "gateway", "origin": "device", "device_id": "BP-1",
		"review_state": "confirmed", "confirmed_by": c.people[authz.Nurse].Email(), "confirmed_at": "2026-01-15T13:55:00Z",
		"measured_at": "2026-01-15T13:44:00Z", "alert_triggered": true, "fhir_status": "pending",
	})
	wantIn(t, c.implausible(patient), object{"status": "resolved", "resolution_reason": nil, "outcome": "confirmed", "observation_id": stored.at("id")})
	if pulses := c.alertsOf(patient, "pulse"); len(pulses) != 1 || pulses[0]["level"] != "critical" || pulses[0]["value"] != 28.0 {
		t.Errorf("the pulse raised %v", pulses)
	}
	if got := c.statEscalations(t); !slices.Equal(got, []string{"stat open system"}) {
		t.Errorf("escalations: %q", got)
	}
	id := stored.at("id").(string)
	c.request(authz.Nurse, "GET", "/fhir/observations/"+id+"/", nil).want(200)
	c.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).wantAt(object{"pulse": 28.0})
	if vitals := c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["latest_vitals"].(object)["blood_pressure"].(object); vitals["systolic"] != 104.0 {
		t.Errorf("latest are %v", vitals)
	}
	c.postEvent(t, body).wantFields("values.pulse")
	c.request(authz.Provider, "POST", confirm, object{"notes": "x"}).want(400, "invalid_state")
	c.implausible(patient)
	if n := c.queryRows(t, `SELECT id FROM observations`); len(n) != 1 {
		t.Errorf("%d readings", len(n))
	}
}

// The API and both vendors behave like the webhook. What a patient types waits for a correction, and then is a warning without an
// escalation.
func TestStoryImplausibleFromEverySource(t *testing.T) {
	var pipeline *ingest.Pipeline
	c := newIngestingClinic(t, func(e *routes.Engines) { pipeline = e.IngestPipeline })
	ada, ben, cem, dee := c.enroll(nil), c.enroll(nil), c.enroll(object{"gateway_patient_id": "GW-3"}), c.enroll(nil)
	portal := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(ben))
	at := c.now.Add(-time.Minute).Format(time.RFC3339)
	typed := object{"patient_id": ada, "systolic": 104, "diastolic": 58, "pulse": 28, "measured_at": at}
	c.request(authz.Provider, "POST", "/ingestion/blood-pressure/", typed).wantFields("pulse")
	c.request(authz.Provider, "POST", "/ingestion/blood-pressure/", typed).wantFields("pulse")
	c.requestAs(portal, "POST", "/ingestion/pulse-oximetry/", object{"spo2": 48, "measured_at": at}).wantFields("spo2")
	c.requestAs(portal, "POST", "/ingestion/pulse-oximetry/", object{"patient_id": ada, "spo2": 48, "measured_at": at}).wantFields("spo2")
	c.sendVendor(t, "tenovi", "["+pressure("T-1", "GW-3", c.now, 128)+","+pulse("T-1", "GW-3", c.now, 28)+"]").wantStatuses("accepted", "rejected validation_error")
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "tel", "patient_id": dee, "device_type": "blood_pressure"}).want(200)
	c.now = c.now.Add(time.Hour)
	c.sendVendor(t, "telli", telli("BloodPressure", "tel", c.now, `"systolic":128,"diastolic":80,"pulse":24`)).wantStatuses("accepted", "rejected validation_error")
	if n, err := pipeline.AlertUncorrected(t.Context(), c.app, c.now); n != 1 || err != nil {
		t.Fatalf("%d uncorrected values (%v)", n, err)
	}
	for _, want := range []struct {
		patient, source, origin, parameter string
		by                                 string
	}{
		{ada, "api", "staff", "pulse", ""}, {ben, "patient_portal", "patient", "spo2", ""}, {cem, "tenovi", "device", "pulse", ""}, {dee, "telli", "device", "pulse", ""},
	} {
		alert := c.implausible(want.patient)
		wantIn(t, alert, object{"parameter": want.parameter, "status": "active"})
		kept := c.queryRows(t, `SELECT COALESCE(NULLIF(source, ''), vendor) FROM gateway_events WHERE id = '`+alert["quarantine_id"].(string)+`'`)
		if !slices.Equal(kept, []string{want.source}) {
			t.Errorf("source %q, want %s", kept, want.source)
		}
		stored := c.request(authz.ClinicalManager, "POST", "/ingestion/quarantine/"+alert["quarantine_id"].(string)+"/confirm/", object{"notes": "True."}).want(201)
		stored.wantAt(object{"origin": want.origin, "review_state": "confirmed", "patient_id": want.patient})
		wantIn(t, c.implausible(want.patient), object{"status": "resolved"})
	}
	c.wantReadings(t, "pulse_oximetry / - ", "blood_pressure 104.0/58.0 28 ", "blood_pressure 128.0/82.0 28 ", "blood_pressure 128.0/80.0 24 ")
	if got := c.statEscalations(t); len(got) != 4 { // the confirmed value of the patient is critical
		t.Errorf("escalations: %q", got)
	}
	if pages := c.request(authz.Admin, "GET", "/ingestion/quarantine/"+query("status", "released"), nil).results(); len(pages) != 4 {
		t.Errorf("%d are released", len(pages))
	}
}

// An event without a readable value that is dangerous is refused without an alert; a person may still decide about it.
func TestStoryNonsenseRaisesNoAlert(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	for _, values := range []string{
		`"systolic":"HI","diastolic":58,"pulse":70`, `"systolic":104,"pulse":70`, `"systolic":104,"diastolic":110`, `"systolic":1e300,"diastolic":80`,
		`"systolic":104,"diastolic":58,"pulse":"fast"`, `"systolic":[120],"diastolic":{"mmHg":80}`,
	} {
		c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now, values)).want(400)
	}
	c.postEvent(t, measured("BP-1", "gw-1", "weight", "stone", c.now, `"weight":12`)).wantFields("unit")
	for _, values := range []string{`"systolic":104,"diastolic":110`, `"systolic":"HI","diastolic":58,"pulse":70`, `"diastolic":58,"pulse":70`} {
		c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now.Add(time.Hour), values)).want(400)
	}
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{"patient_id": patient, "systolic": "55", "diastolic": 30, "measured_at": c.now.Format(time.RFC3339)}).wantFields("systolic")
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{"patient_id": "0194c5a8-0000-7000-8000-000000000000", "systolic": 55, "diastolic": 30, "measured_at": c.now.Format(time.RFC3339)}).wantFields("systolic")
	c.wantAlerts(t)
	if kept := c.queryRows(t, `SELECT id FROM gateway_events WHERE implausible = TRUE`); len(kept) != 9 {
		t.Errorf("%d wait for a person, want the 9 of pressures", len(kept))
	}
}

// An event without a patient stays in quarantine until a person assigns it, or the device is assigned and the gateway
// retries.
func TestStoryImplausibleUnmatched(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	bodies := []string{
		measured("BP-1", "nobody", "blood_pressure", "mmHg", c.now, `"systolic":55,"diastolic":34`),
		measured("BP-2", "nobody", "blood_pressure", "mmHg", c.now.Add(time.Hour), `"systolic":56,"diastolic":34`),
	}
	c.postEvent(t, bodies[0]).want(400)
	c.wantAlerts(t)
	id := c.queryRows(t, `SELECT id FROM gateway_events`)[0]
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "x"}).want(400, "invalid_state")
	release := "/ingestion/quarantine/" + id + "/release/"
	c.request(authz.MA, "POST", release, object{"patient_id": patient}).want(200).wantAt(object{"id": id, "status": "rejected", "patient_id": patient, "implausible": true})
	wantIn(t, c.implausible(patient), object{"parameter": "systolic", "value": 55.0, "quarantine_id": id})
	c.request(authz.MA, "POST", release, object{"patient_id": c.enroll(nil)}).want(400, "invalid_state")

	c.now = c.now.Add(time.Hour)
	c.postEvent(t, bodies[1]).want(400)
	c.now = c.now.Add(time.Minute)
	c.insert("device_assignments", dbx.Params{"id": "assignment00001", "device_id": "BP-2", "patient": patient, "assigned_at": "2026-01-01T00:00:00.000000Z", "unassigned_at": ""})
	c.postEvent(t, bodies[1]).want(400)
	c.postEvent(t, bodies[1]).want(400)
	if list := c.alertsOf(patient, "implausible_reading"); len(list) != 2 {
		t.Errorf("%d alerts", len(list))
	}
}

// A broken cuff sends all day: each event has an alert, one stat escalation holds them, and pushes are at least 30
// minutes apart.
func TestStoryBrokenCuff(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	for range 24 {
		c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now, `"systolic":500,"diastolic":90`)).want(400)
		c.now = c.now.Add(5 * time.Minute)
	}
	wantIn(t, c.implausible(patient), object{"reported_count": 24.0})
	if notified := c.queryRows(t, `SELECT key FROM announcements WHERE kind = 'escalation_opened'`); len(notified) != 1 { // the ladder notifies after that
		t.Errorf("the escalation is notified %d times", len(notified))
	}
	// All but one are discarded: the escalation stays for that one.
	for i := range 24 {
		if got := c.statEscalations(t); !slices.Equal(got, []string{"stat open system"}) {
			t.Fatalf("after %d: %q", i, got)
		}
		id := c.implausible(patient)["quarantine_id"].(string)
		c.request(authz.Admin, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A broken cuff."}).want(200)
	}
	if got := c.statEscalations(t); !slices.Equal(got, []string{"stat cancelled system"}) {
		t.Errorf("after all: %q", got)
	}
}

// A late implausible event alerts as late and is not stat; with a newer reading it closes at once.
func TestStoryImplausibleLate(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.worked(patient, "BP-1")
	late := func(days int) string {
		return measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now.AddDate(0, 0, -days), `"systolic":55,"diastolic":34`)
	}
	c.postEvent(t, late(2)).want(400)
	wantIn(t, c.implausible(patient), object{"late": true, "status": "active", "resolution_reason": nil})
	if message := fmt.Sprint(c.implausible(patient)["message"]); !strings.HasSuffix(message, " Measured "+c.now.AddDate(0, 0, -2).Format(time.RFC3339)+".") {
		t.Errorf("the message is %q", message)
	}
	if notified := c.queryRows(t, `SELECT kind FROM announcements WHERE alert != ''`); !slices.Equal(notified, []string{"alert_raised"}) {
		t.Errorf("notified: %q", notified)
	}
	c.postEvent(t, cuffEvent("BP-2", "gw-1", 128, c.now)).want(200)
	c.postEvent(t, late(3)).want(400)
	list := c.alertsOf(patient, "implausible_reading")
	wantIn(t, list[0], object{"late": true, "status": "auto_resolved", "resolution_reason": "superseded", "resolved_by": "system"})
	notified := c.queryRows(t, `SELECT kind || ' ' || severity || ' ' || (key LIKE '% superseded') FROM announcements WHERE alert != '' ORDER BY rowid`)
	if !slices.Equal(notified, []string{"alert_raised critical 0", "reading_superseded critical 1"}) || len(c.statEscalations(t)) != 0 {
		t.Errorf("notified: %q, escalations: %q", notified, c.statEscalations(t))
	}
}
