package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// sendWeight sends a weight of the patient's scale by webhook and returns the observation.
func (c *clinic) sendWeight(gatewayPatient string, kg float64, at time.Time) reply {
	c.t.Helper()
	return c.sendWeightFrom("W-1", gatewayPatient, kg, at)
}

// sendWeightFrom is sendWeight from another scale, since one that goes back in time would be doubted.
func (c *clinic) sendWeightFrom(scale, gatewayPatient string, kg float64, at time.Time) reply {
	c.t.Helper()
	if at.After(c.now) {
		c.now = at
	}
	body := fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":%q,"measurement_type":"weight","values":{"weight":%v},"unit":"kg","timestamp":%q}`,
		scale, gatewayPatient, kg, at.Format(time.RFC3339))
	id, _ := c.postEvent(c.t, body).want(200).at("observation_id").(string)
	return c.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200)
}

// weighedDaily creates a patient with a scale and the given weights, one each morning before now.
func (c *clinic) weighedDaily(kg ...float64) (patient string, next time.Time) {
	c.t.Helper()
	patient = c.enroll(object{"gateway_patient_id": "GW-1"})
	c.request(authz.Admin, "POST", "/devices/assign/", object{
		"device_id": "W-1", "patient_id": patient, "device_type": "weight_scale", "assigned_at": c.now.AddDate(0, 0, -40).Format(time.RFC3339),
	}).want(200)
	for i, value := range kg {
		c.sendWeight("GW-1", value, c.now.AddDate(0, 0, i-len(kg))).wantAt(object{"review_state": "accepted"})
	}
	return patient, c.now.Add(time.Minute)
}

// weightSummary summarizes a patient's weights: days and device readings that count, queued deliveries, score and latest
// weight.
func (c *clinic) weightSummary(patient string) string {
	c.t.Helper()
	days := c.queryRows(c.t, `SELECT COALESCE(SUM(readings), 0) || ' readings, ' || COALESCE(SUM(device_readings), 0) || ' of devices' FROM reading_days WHERE patient = '`+patient+`'`)
	queued := c.queryRows(c.t, `SELECT COUNT(*) FROM transmissions WHERE patient = '`+patient+`'`)
	var latest any
	for _, row := range c.request(authz.Nurse, "GET", "/triage/patients/"+query("page_size", "100"), nil).results() {
		if row["patient_id"] == patient || row["id"] == patient {
			vitals, _ := row["latest_vitals"].(object)
			weight, _ := vitals["weight"].(object)
			latest = weight["weight_kg"]
		}
	}
	return fmt.Sprintf("%s, %s for the EMR, latest %v", days[0], queued[0], latest)
}

func (c *clinic) openAlerts(patient string) (list []string) {
	c.t.Helper()
	for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "status", "active", "page_size", "100"), nil).results() {
		list = append(list, fmt.Sprint(alert["type"], " ", alert["level"]))
	}
	slices.Sort(list)
	return list
}

func (c *clinic) confirmReading(role authz.Role, id any) reply {
	c.t.Helper()
	return c.request(role, "POST", fmt.Sprintf("/ingestion/observations/%v/confirm/", id), object{"notes": "It was she."})
}

// portalOf returns the patient's portal user.
func (c *clinic) portalOf(patient string) *collections.User {
	c.t.Helper()
	portal := vigiltest.User(c.t, c.app, authz.Patient)
	portal.Set("patient", patient)
	if err := c.app.Save(portal.ProxyRecord()); err != nil {
		c.t.Fatal(err)
	}
	return portal
}

// The spouse of 62 kg on an 88 kg patient's scale: the reading is stored and shown, and has no other effect.
func TestStorySpouseOnTheScale(t *testing.T) {
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(88.2, 87.9, 88, 88.1, 88.3, 87.8, 88)
	before := c.weightSummary(patient)
	spouse := c.sendWeight("GW-1", 62, at).wantAt(object{
		"review_state": "suspect", "suspect_reason": "far_from_usual", "status": "final", "fhir_status": nil, "confirmed_by": nil, "confirmed_at": nil,
		"alert_triggered": true, "alert_details.level": "warning", "weight_kg": 62.0, "origin": "device",
	})
	if message, _ := spouse.at("alert_details.message").(string); !strings.Contains(message, "Who stood on the scale?") || !strings.Contains(message, "88 kg") {
		t.Errorf("message %q", message)
	}
	wantSame(t, "alerts", c.alertsRaised(patient), []string{"suspect_reading warning weight 62/78"})
	if after := c.weightSummary(patient); after != before {
		t.Errorf("it counts: %s, before %s", after, before)
	}
	// The spouse returns twice in the same run; the patient's own weight is evaluated as if these readings did not
	// exist.
	at = at.Add(26 * time.Hour)
	c.sendWeight("GW-1", 66, at).wantAt(object{"review_state": "suspect", "alert_triggered": false})
	wantSame(t, "alerts of a run", c.alertsRaised(patient), []string{"suspect_reading warning weight 62/78"})
	at = at.Add(time.Hour)
	c.sendWeight("GW-1", 88.4, at).wantAt(object{"review_state": "accepted", "alert_triggered": false})
	at = at.Add(2 * time.Hour)
	c.sendWeight("GW-1", 61, at).wantAt(object{"review_state": "suspect", "alert_triggered": true})
	wantSame(t, "alerts of the next run", c.alertsRaised(patient), []string{"suspect_reading warning weight 62/78", "suspect_reading warning weight 61/78"})

	id := spouse.at("id").(string)
	for _, path := range []string{"/transform/", "/transmit/"} {
		if answer := c.request(authz.Nurse, "POST", "/fhir/observations/"+id+path, nil); answer.status != 400 {
			t.Errorf("%s of a suspect reading: %d %s", path, answer.status, answer.body)
		}
	}
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "The spouse"}).want(200).
		wantAt(object{"status": "entered_in_error", "review_state": "suspect"})
	c.confirmReading(authz.Nurse, id).want(400, "invalid_state")
	wantSame(t, "open", c.openAlerts(patient), []string{"suspect_reading warning", "suspect_reading warning"}) // the rest of its run, and the next
}

// 176.4 lb sent as kg: no gain of 96 kg is reported.
func TestStoryPoundsAsKilograms(t *testing.T) {
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(80, 80.2, 79.9)
	sent := c.sendWeight("GW-1", 176.4, at).wantAt(object{"review_state": "suspect", "suspect_reason": "wrong_unit"})
	if message, _ := sent.at("alert_details.message").(string); !strings.Contains(message, "In lbs it would be 80.01 kg.") {
		t.Errorf("message %q", message)
	}
	wantSame(t, "alerts", c.alertsRaised(patient), []string{"suspect_reading warning weight 176.4/90"})
	if open := c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", patient), nil).results(); len(open) > 0 {
		t.Errorf("escalated: %v", open)
	}
}

// A similar reading within a day confirms a suspect one: both are evaluated in order of measurement.
func TestStorySecondReadingConfirms(t *testing.T) {
	usual := []float64{88.2, 87.9, 88, 88.1, 88.3, 87.8, 88}
	for name, story := range map[string]struct {
		first, second float64
		after         time.Duration
		confirms      bool
		state         string // state of the second reading
	}{
		"near, five minutes later":            {76, 76.3, 5 * time.Minute, true, "confirmed"},
		"near, 24 hours later":                {76, 77, 24 * time.Hour, true, "confirmed"},
		"near, a minute more than a day":      {76, 76, 24*time.Hour + time.Minute, false, "suspect"},
		"two kilograms":                       {76, 74, time.Hour, true, "confirmed"},
		"more than two kilograms":             {76, 73.99, time.Hour, false, "suspect"},
		"two per cent of a great weight":      {120, 122.4, time.Hour, true, "confirmed"},
		"more than that":                      {120, 122.41, time.Hour, false, "suspect"},
		"near, and not in doubt itself":       {77.5, 78.5, time.Hour, true, "accepted"},
		"the patient's usual weight again":    {62, 88, time.Hour, false, "accepted"},
		"arrives later, was measured earlier": {76, 76.3, -time.Hour, true, "confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, at := c.weighedDaily(usual...)
			at = at.Add(3 * time.Hour)
			first := c.sendWeight("GW-1", story.first, at).wantAt(object{"review_state": "suspect"})
			days := c.weightSummary(patient)
			second := c.sendWeight("GW-1", story.second, at.Add(story.after)).wantAt(object{"review_state": story.state})
			first = c.request(authz.Nurse, "GET", "/ingestion/observations/"+first.at("id").(string)+"/", nil).want(200)
			if !story.confirms {
				first.wantAt(object{"review_state": "suspect", "fhir_status": nil})
				return
			}
			now := c.now.Format(time.RFC3339)
			first.wantAt(object{
				"review_state": "confirmed", "confirmed_by": "system", "confirmed_at": now, "suspect_reason": "far_from_usual",
				"fhir_status": "pending", "alert_triggered": true,
			})
			if message, _ := first.at("alert_details.message").(string); strings.Contains(message, "Who stood") {
				t.Errorf("the answered question hides the finding: %s", message)
			}
			second.wantAt(object{"fhir_status": "pending", "alert_triggered": true})
			if after := c.weightSummary(patient); after == days || !strings.HasPrefix(after, "9 readings, 9 of devices, 9 for the EMR") {
				t.Errorf("it is %s, before %s", after, days)
			}
			for _, kind := range c.openAlerts(patient) {
				if strings.HasPrefix(kind, "suspect_reading") {
					t.Error("the question is still open")
				}
			}
			order := c.queryRows(t, `SELECT o.measured_at FROM alerts a JOIN observations o ON o.id = a.observation WHERE a.type = 'weight' ORDER BY a.id`)
			if !slices.IsSorted(order) || len(order) != 2 {
				t.Errorf("judged at %v", order)
			}
		})
	}
}

// A typed weight of the patient does not confirm a device's weight, in any order; a device's weight confirms both.
func TestStoryTypedWeightConfirmsNoDevice(t *testing.T) {
	for name, story := range map[string]struct {
		weights string // source and weight, in order of arrival
		kg      []float64
		want    []string
	}{
		"typed after":                   {"dp", []float64{62, 62.5}, []string{"62.0 suspect", "62.5 suspect"}},
		"typed before":                  {"pd", []float64{62.5, 62}, []string{"62.5 suspect", "62.0 suspect"}},
		"typed twice":                   {"pp", []float64{62, 62.5}, []string{"62.0 confirmed", "62.5 confirmed"}},
		"typed twice, then the device":  {"ppd", []float64{62, 62.5, 62.2}, []string{"62.0 confirmed", "62.5 confirmed", "62.2 suspect"}},
		"the device, then typed twice":  {"dpp", []float64{62.2, 62, 62.5}, []string{"62.2 suspect", "62.0 confirmed", "62.5 confirmed"}},
		"the device twice, typed first": {"pdd", []float64{62, 62.5, 62.2}, []string{"62.0 confirmed", "62.5 confirmed", "62.2 confirmed"}},
		"staff after":                   {"ds", []float64{62, 62.5}, []string{"62.0 confirmed", "62.5 confirmed"}},
		"the device is not in doubt":    {"pd", []float64{77.5, 78.5}, []string{"77.5 confirmed", "78.5 accepted"}},
		"what is typed is not in doubt": {"dp", []float64{77.5, 78.5}, []string{"77.5 suspect", "78.5 accepted"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, at := c.weighedDaily(88, 88, 88, 88, 88)
			portal := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(patient))
			for i, kg := range story.kg {
				c.now = at.Add(time.Duration(i) * time.Hour)
				body := object{"patient_id": patient, "weight_kg": kg, "measured_at": c.now.Format(time.RFC3339)}
				switch story.weights[i] {
				case 'd':
					c.sendWeight("GW-1", kg, c.now)
				case 'p':
					c.requestAs(portal, "POST", "/ingestion/weight/", body).want(201)
				default:
					c.request(authz.Nurse, "POST", "/ingestion/weight/", body).want(201)
				}
			}
			kept := c.queryRows(t, `SELECT weight_kg || ' ' || IIF(review_state = '', 'accepted', review_state) FROM observations WHERE measured_at >= '`+collections.FormatInstant(at)+`' ORDER BY measured_at`)
			wantSame(t, "kept", kept, story.want)
		})
	}
	// A weight that a person has confirmed counts as confirmed, from any source.
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(88, 88, 88, 88, 88)
	portal := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(patient))
	c.now = at
	typed := c.requestAs(portal, "POST", "/ingestion/weight/", object{"patient_id": patient, "weight_kg": 62, "measured_at": at.Format(time.RFC3339)}).want(201)
	c.confirmReading(authz.Nurse, typed.at("id")).want(200)
	c.sendWeight("GW-1", 62.5, at.Add(time.Hour)).wantAt(object{"review_state": "accepted"})
}

// Clinicians may confirm that a reading is the patient's.
func TestStoryStaffConfirm(t *testing.T) {
	for _, role := range []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse} {
		c := newIngestingClinic(t)
		patient, at := c.weighedDaily(80, 80.2, 79.9)
		sent := c.sendWeight("GW-1", 92, at).wantAt(object{"review_state": "suspect"})
		for _, other := range []authz.Role{authz.MA, authz.DataMonitor, authz.Patient} {
			c.confirmReading(other, sent.at("id")).want(403)
		}
		c.confirmReading(role, "0194c5a8-0000-7000-8000-000000000000").want(404)
		c.now = c.now.Add(time.Hour)
		c.confirmReading(role, sent.at("id")).want(200).wantAt(object{
			"review_state": "confirmed", "confirmed_by": c.people[role].Email(), "confirmed_at": c.now.Format(time.RFC3339), "fhir_status": "pending",
			"status": "final", "alert_triggered": true, "alert_details.level": "critical",
		})
		portal := c.portalOf(patient)
		c.requestAs(portal, "GET", "/ingestion/observations/"+sent.at("id").(string)+"/", nil).want(200).
			wantAt(object{"review_state": "confirmed", "confirmed_by": nil, "confirmed_at": c.now.Format(time.RFC3339)}) // no staff names
		if list := c.requestAs(portal, "GET", "/ingestion/observations/", nil).want(200); strings.Contains(list.body, c.people[role].Email()) {
			t.Errorf("the portal is shown %s", list.body)
		}
		wantSame(t, "open", c.openAlerts(patient), []string{"weight critical"})
		if got := c.weightSummary(patient); got != "4 readings, 4 of devices, 4 for the EMR, latest 92" {
			t.Error(got)
		}
		if open := c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", patient), nil).results(); len(open) != 1 || open[0]["priority"] != "stat" {
			t.Errorf("escalated: %v", open)
		}
		before := len(c.events(patient))
		c.confirmReading(role, sent.at("id")).want(200).wantAt(object{"review_state": "confirmed"})
		if events := c.events(patient); len(events) != before+1 || !slices.Contains(events, "observation.confirm") { // it was read again
			t.Errorf("confirming again is recorded as %v", events[before:])
		}
		calm := c.sendWeight("GW-1", 92.1, c.now.Add(48*time.Hour)).wantAt(object{"review_state": "accepted"}) // that weight is confirmed
		c.confirmReading(role, calm.at("id")).want(400, "invalid_state")
		if pictures := c.queryRows(t, `SELECT COUNT(*) FROM daily_counts WHERE status = 'suspect' AND readings != 0`); pictures[0] != "0" {
			t.Errorf("%s totals of suspect readings are left", pictures[0])
		}
	}
}

// The rule's limits: how many readings it needs, which ones count, and which values are never suspect.
func TestStorySuspectLimits(t *testing.T) {
	for name, story := range map[string]struct {
		usual []float64
		kg    float64
		want  string
	}{
		"at ten kilograms":                        {[]float64{88, 88, 88}, 78, "accepted"},
		"beyond":                                  {[]float64{88, 88, 88}, 77.99, "suspect"},
		"ten per cent of more than 100 kg":        {[]float64{120, 120, 120}, 132, "accepted"},
		"beyond ten per cent":                     {[]float64{120, 120, 120}, 132.01, "suspect"},
		"two readings are too few":                {[]float64{88, 88}, 62, "accepted"},
		"of the last seven only":                  {[]float64{60, 60, 60, 88, 88, 88, 88, 88, 88, 88}, 62, "suspect"},
		"the median bears one that is out of way": {[]float64{88, 62, 88}, 62.2, "suspect"},
		"an even number":                          {[]float64{80, 84, 86, 90}, 95, "accepted"},
		"an even number, beyond":                  {[]float64{80, 84, 86, 90}, 95.01, "suspect"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			c.enroll(object{"gateway_patient_id": "GW-1"})
			for i, kg := range story.usual {
				sent := c.sendWeight("GW-1", kg, c.now.AddDate(0, 0, i-len(story.usual)))
				if sent.at("review_state") == "suspect" {
					c.confirmReading(authz.Nurse, sent.at("id")).want(200)
				}
			}
			c.sendWeight("GW-1", story.kg, c.now.Add(time.Minute)).wantAt(object{"review_state": story.want})
		})
	}
	t.Run("readings of more than 30 days ago are too old", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.enroll(object{"gateway_patient_id": "GW-1"})
		start := c.now.AddDate(0, 0, -34)
		for i := range 3 {
			c.sendWeight("GW-1", 88, start.AddDate(0, 0, i))
		}
		c.sendWeight("GW-1", 62, start.AddDate(0, 0, 31)).wantAt(object{"review_state": "accepted"})
	})
}

// Another person's weight is suspect from every source: typed by staff or by the patient, from a file, or released from
// quarantine.
func TestStorySuspectSources(t *testing.T) {
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(88, 88.2, 87.9)
	portal := c.portalOf(patient)
	c.now = at.AddDate(0, 0, 6)
	day := func(n int) time.Time { return at.AddDate(0, 0, n).Truncate(time.Second) }
	typed := object{"patient_id": patient, "weight_kg": 62, "measured_at": day(0).Format(time.RFC3339)}
	c.request(authz.MA, "POST", "/ingestion/weight/", typed).want(201).wantAt(object{"review_state": "suspect", "origin": "staff"})
	c.request(authz.MA, "POST", "/ingestion/weight/", typed).want(200).wantAt(object{"review_state": "suspect", "duplicate": true})
	c.request(authz.MA, "POST", "/ingestion/weight/", object{"patient_id": patient, "weight_lbs": 250, "measured_at": day(2).Format(time.RFC3339)}).want(201).
		wantAt(object{"review_state": "suspect", "suspect_reason": "far_from_usual", "weight_kg": 113.4})
	own := c.requestAs(portal, "POST", "/ingestion/weight/", object{"weight_kg": 62, "measured_at": day(4).Format(time.RFC3339)}).want(201).
		wantAt(object{"review_state": "suspect", "origin": "patient"})
	waited := c.postEvent(t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"W-2","patient_id":"nobody","measurement_type":"weight","values":{"weight":70},"unit":"kg","timestamp":%q}`,
		day(5).Format(time.RFC3339))).want(200).at("event_id")
	c.request(authz.MA, "POST", fmt.Sprintf("/ingestion/quarantine/%v/release/", waited), object{"patient_id": patient}).want(201).
		wantAt(object{"review_state": "suspect", "origin": "device"})
	// Readings of another kind in between have no effect.
	c.request(authz.MA, "POST", "/ingestion/blood-pressure/", object{"patient_id": patient, "systolic": 120, "diastolic": 80, "measured_at": day(5).Format(time.RFC3339)}).want(201).
		wantAt(object{"review_state": "accepted"})
	wantSame(t, "alerts", c.alertsRaised(patient), []string{"suspect_reading warning weight 62/78"})

	// A second, similar weight confirms it, even if another user typed the first.
	c.requestAs(portal, "POST", "/ingestion/weight/", object{"weight_kg": 62.5, "measured_at": day(4).Add(time.Minute).Format(time.RFC3339)}).want(201).
		wantAt(object{"review_state": "confirmed"})
	c.request(authz.Nurse, "GET", "/ingestion/observations/"+own.at("id").(string)+"/", nil).want(200).wantAt(object{"review_state": "confirmed", "confirmed_by": "system"})
	c.requestAs(portal, "GET", "/ingestion/observations/"+own.at("id").(string)+"/", nil).want(200).wantAt(object{"confirmed_by": "system"})

	// The list counts every reading, in any review state.
	if all := c.request(authz.Nurse, "GET", "/ingestion/observations/"+query("page_size", "100"), nil).results(); len(all) != 9 {
		t.Errorf("%d readings are listed", len(all))
	}
	if weights := c.request(authz.Nurse, "GET", "/ingestion/observations/"+query("page_size", "100", "observation_type", "weight"), nil).results(); len(weights) != 8 {
		t.Errorf("%d weights are listed", len(weights))
	}
}

// A suspect reading is no billing evidence until it is confirmed.
func TestStorySuspectBilling(t *testing.T) {
	c := newIngestingClinic(t)
	start := c.now.AddDate(0, 0, -31)
	patient := c.enroll(object{"gateway_patient_id": "GW-1"})
	c.request(authz.Admin, "POST", "/devices/assign/", object{
		"device_id": "W-1", "patient_id": patient, "device_type": "weight_scale", "assigned_at": start.AddDate(0, 0, -1).Format(time.RFC3339),
	}).want(200)
	for i := range 15 {
		c.sendWeight("GW-1", 88, start.AddDate(0, 0, i))
	}
	spouse := c.sendWeight("GW-1", 62, start.AddDate(0, 0, 16))
	days := func() string {
		t.Helper()
		evidence, err := collections.EvidenceReadings(c.app, patient, start, c.now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(c.queryRows(t, `SELECT COUNT(DISTINCT day) FROM reading_days WHERE device_readings > 0`)[0], " days, ", len(evidence), " readings")
	}
	if got := days(); got != "15 days, 15 readings" {
		t.Errorf("%v before it is confirmed", got)
	}
	c.confirmReading(authz.Provider, spouse.at("id")).want(200)
	if got := days(); got != "16 days, 16 readings" {
		t.Errorf("%v once it is confirmed", got)
	}
	c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", spouse.at("id")), object{"reason": "It was the spouse"}).want(200)
	if got := days(); got != "15 days, 15 readings" {
		t.Errorf("%v after the retraction", got)
	}
}

// A scale in the wrong unit repeats its value: repetition does not confirm it, and a person decides. The patient's
// weights in the right unit are evaluated as usual.
func TestStoryWrongUnitWaitsForAPerson(t *testing.T) {
	for name, weights := range map[string][]float64{
		"twice":                         {176.4, 176.6},
		"three times":                   {176.4, 176.6, 176.2},
		"with a gain of three kilogram": {183, 183.2},
		"drifting out of what is usual": {180.8, 181.5, 181.6},
	} {
		for _, every := range []time.Duration{time.Minute, 11 * time.Hour} {
			c := newIngestingClinic(t)
			patient, at := c.weighedDaily(80, 80.2, 79.9)
			before := c.weightSummary(patient)
			for i, kg := range weights {
				c.sendWeight("GW-1", kg, at.Add(time.Duration(i)*every)).wantAt(object{"review_state": "suspect", "suspect_reason": "wrong_unit"})
			}
			if after := c.weightSummary(patient); after != before || len(c.statEscalations(t)) != 0 {
				t.Errorf("%s: it counts: %s, before %s", name, after, before)
			}
			wantSame(t, name, c.openAlerts(patient), []string{"suspect_reading warning"})
			first := c.queryRows(t, `SELECT id FROM observations WHERE review_state = 'suspect' ORDER BY measured_at LIMIT 1`)[0]
			c.confirmReading(authz.Nurse, first).want(200).wantAt(object{"review_state": "confirmed"}) // the weight is real
			if left := c.queryRows(t, `SELECT id FROM observations WHERE review_state = 'suspect'`); len(left) != len(weights)-1 {
				t.Errorf("%s: %d unconfirmed readings wait", name, len(left))
			}
			c.sendWeight("GW-1", weights[0], c.now.Add(time.Minute)).wantAt(object{"review_state": "accepted"})
		}
	}
	// Staff types in kilograms the number that a device sent in pounds: it is no second reading either.
	c := newIngestingClinic(t)
	patient, at := c.weighedDaily(80, 80.2, 79.9)
	c.sendWeight("GW-1", 176.4, at)
	c.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": patient, "weight_kg": 176.4, "measured_at": c.now.Format(time.RFC3339)}).
		want(201).wantAt(object{"review_state": "suspect", "suspect_reason": "wrong_unit"})
	// The patient uses the scale in the right unit: that weight is not suspect.
	c.sendWeight("GW-1", 80.3, at.Add(time.Minute)).wantAt(object{"review_state": "accepted", "alert_triggered": false})
}
