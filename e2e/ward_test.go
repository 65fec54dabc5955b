package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Patient stories through the public interfaces: each must end as a clinician on the night shift expects, in time zones on
// both sides of the Atlantic, where clocks change on different dates.

const ingestion = "/api/v1/ingestion/"

const vendorSecret = "a-secret-of-the-vendors"

// ward is a practice with its service running, with patients in the practice's time zone.
type ward struct {
	*practice
	zone *time.Location
}

func newWard(t testing.TB, zone string) ward {
	t.Helper()
	place, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	w := ward{newPractice(t, "VIGIL_PRACTICE_TIME_ZONE="+zone, "VIGIL_GATEWAY_TENOVI_SECRET="+vendorSecret, "VIGIL_GATEWAY_TELLI_SECRET="+vendorSecret).serve(t, ""), place}
	w.Admin(t)
	w.Superuser(t)
	return w
}

// Each story has its own patients; all stories run concurrently.
func TestWard(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"America/New_York", "Europe/Berlin"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			w := newWard(t, zone)
			for name, story := range wardStories {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					story(t, w)
				})
			}
		})
	}
}

var wardStories = map[string]func(t *testing.T, w ward){
	"implausible": wardImplausible, "triage": wardTriage, "standing": wardStanding, "late": wardLate, "scales": wardScales,
	"weight": wardWeight, "clock": wardClock,
	"changed clocks": wardChangedClocks, "on call": wardOnCall, "templates": wardTemplates, "exact bounds": wardExactBounds,
	"whom to call": wardWhomToCall, "heartbeats": wardHeartbeats, "snooze": wardSnooze,
	"night: glucose": nightGlucose, "night: oxygen": nightOxygen, "night: two cuffs": nightTwoCuffs, "night: scale": nightScale,
	"night: neighbour": nightNeighbour, "night: archived": nightArchived, "night: thresholds": nightThresholds,
	"night: same minute": nightSameMinute, "night: batch": nightBatch, "night: dashboard": nightDashboard, "night: telli": nightTelli,
	"night: flood": nightFlood, "night: fast clock": nightFastClock, "night: moved": nightMoved, "night: two nurses": nightTwoNurses,
	"night: import": nightImport, "night: replay": nightReplay, "night: portal": nightPortal, "night: typed at the end": nightTypedAtTheEnd,
}

// enrol enrolls a patient with the gateway id GW-<name>.
func (w ward) enrol(t testing.TB, name string, fields object) string {
	t.Helper()
	body := object{"first_name": name, "gateway_patient_id": "GW-" + name, "time_zone": w.zone.String()}
	for field, value := range fields {
		body[field] = value
	}
	return w.patient(t, body)
}

// event is a measurement as the gateway sends it.
func event(patient, device, kind, unit string, values object, at time.Time) object {
	return object{
		"event_type": "measurement.created", "device_id": device, "patient_id": "GW-" + patient, "measurement_type": kind,
		"values": values, "unit": unit, "timestamp": at.UTC().Format(time.RFC3339),
	}
}

func cuff(patient string, systolic, diastolic float64, at time.Time) object {
	return event(patient, "BP-"+patient, "blood_pressure", "mmHg", object{"systolic": systolic, "diastolic": diastolic}, at)
}

func oxygen(patient string, spo2 float64, at time.Time) object {
	return event(patient, "OX-"+patient, "pulse_oximetry", "%", object{"spo2": spo2}, at)
}

func weighing(patient string, kilograms float64, at time.Time) object {
	return event(patient, "SC-"+patient, "weight", "kg", object{"weight": kilograms}, at)
}

// alertsOf returns a patient's alerts, newest first, as "level type status".
func (w ward) alertsOf(t testing.TB, patient string) (list []string) {
	t.Helper()
	a := w.get(t, "/api/v1/alerts/?patient_id="+patient, w.Admin(t)).expect(t, 200)
	results, _ := at(t, a, "results").([]any)
	for _, one := range results {
		alert := one.(map[string]any)
		if alert["level"] != "normal" {
			list = append(list, fmt.Sprint(alert["level"], " ", alert["type"], " ", alert["status"]))
		}
	}
	return list
}

func (w ward) wantAlerts(t testing.TB, story, patient string, want ...string) {
	t.Helper()
	if got := strings.Join(w.alertsOf(t, patient), ", "); got != strings.Join(want, ", ") {
		t.Errorf("%s: the alerts are %q, want %q", story, got, want)
	}
}

// escalationsOf counts a patient's open escalations of a priority.
func (w ward) escalationsOf(t testing.TB, patient, priority string) int {
	t.Helper()
	a := w.get(t, "/api/v1/escalations/?patient_id="+patient+"&status=open&priority="+priority, w.Admin(t)).expect(t, 200)
	n, _ := at(t, a, "count").(float64)
	return int(n)
}

func (w ward) wantStat(t testing.TB, story, patient string, want int) {
	t.Helper()
	if got := w.escalationsOf(t, patient, "stat"); got != want {
		t.Errorf("%s: %d stat escalations are open, want %d", story, got, want)
	}
}

// triageRow returns the score, level and handling of a patient's triage row.
func (w ward) triageRow(t testing.TB, patient string) (score float64, level string, handling any) {
	t.Helper()
	a := w.get(t, "/api/v1/triage/patients/?patient_id="+patient, w.Admin(t)).expect(t, 200)
	score, _ = at(t, a, "results.0.risk_score").(float64)
	return score, text(t, a, "results.0.risk_level"), at(t, a, "results.0.handling")
}

func (w ward) acknowledge(t testing.TB, patient string) {
	t.Helper()
	a := w.get(t, "/api/v1/alerts/?acknowledged=false&patient_id="+patient, w.Admin(t)).expect(t, 200)
	results, _ := at(t, a, "results").([]any)
	for _, one := range results {
		w.post(t, fmt.Sprintf("/api/v1/alerts/%.0f/acknowledge/", one.(map[string]any)["id"]), w.Admin(t), object{"notes": "seen"}).expect(t, 200)
	}
}

// Implausible values are an emergency until a clinician has reviewed them.
func wardImplausible(t *testing.T, w ward) {
	for _, story := range []struct {
		name  string
		event func(name string) object
		stat  int
	}{
		{"Pulse28", func(n string) object {
			return event(n, "BP-"+n, "blood_pressure", "mmHg", object{"systolic": 104, "diastolic": 58, "pulse": 28}, now())
		}, 1},
		{"Spo48", func(n string) object { return oxygen(n, 48, now()) }, 1},
		{"Systolic55", func(n string) object { return cuff(n, 55, 35, now()) }, 1},
		{"Glucose650", func(n string) object {
			return event(n, "GL-"+n, "blood_glucose", "mg/dL", object{"glucose": 650}, now())
		}, 1},
		{"Heavy", func(n string) object { return weighing(n, 620, now()) }, 0},
	} {
		patient := w.enrol(t, story.name, nil)
		sent := story.event(story.name)
		for range 2 { // the gateway retries
			w.signed(t, sent).expect(t, 400)
		}
		w.wantAlerts(t, story.name, patient, "critical implausible_reading active")
		w.wantStat(t, story.name, patient, story.stat)
		a := w.get(t, "/api/v1/alerts/?patient_id="+patient, w.Admin(t))
		if values, _ := at(t, a, "results.0.reported_values").(map[string]any); len(values) == 0 {
			t.Errorf("%s: the alert shows no values\n%s", story.name, a.body)
		}
		if score, level, handling := w.triageRow(t, patient); level != "critical" || score < 86 || handling != "unanswered" {
			t.Errorf("%s: on the list with %v %s %v", story.name, score, level, handling)
		}
		path := ingestion + "quarantine/" + text(t, a, "results.0.quarantine_id") + "/"
		if story.name == "Spo48" { // a nurse reviews it: the probe was not on the finger
			w.post(t, path+"discard/", w.Admin(t), object{"reason": "probe off"}).expect(t, 200)
			w.wantStat(t, story.name, patient, 0)
			a = w.get(t, "/api/v1/alerts/?patient_id="+patient, w.Admin(t))
			wantAt(t, a, object{"results.0.resolution_reason": "withdrawn"})
			if _, level, _ := w.triageRow(t, patient); level == "critical" {
				t.Errorf("%s: still critical when dismissed", story.name)
			}
		}
		if story.name == "Pulse28" {
			confirmed := w.post(t, path+"confirm/", w.Admin(t), object{"notes": "felt the pulse"}).expect(t, 201)
			wantAt(t, confirmed, object{"systolic": 104.0, "pulse": 28.0, "review_state": "confirmed", "confirmed_by": adminEmail})
			w.post(t, path+"confirm/", w.Admin(t), object{"notes": "again"}).expect(t, 400)
			w.wantStat(t, story.name, patient, 1)
		}
	}
}

// A worse patient never ranks lower.
func wardTriage(t *testing.T, w ward) {
	warned, dying, handled := w.enrol(t, "Warned", nil), w.enrol(t, "Dying", nil), w.enrol(t, "Handled", nil)
	for i := range 6 {
		w.signed(t, cuff("Warned", 178, 118, now().Add(-time.Duration(i)*time.Hour))).expect(t, 200)
	}
	w.signed(t, oxygen("Handled", 71, now().Add(-2*time.Hour))).expect(t, 200)
	w.acknowledge(t, handled)
	a := w.get(t, "/api/v1/escalations/?patient_id="+handled, w.Admin(t)).expect(t, 200)
	id := fmt.Sprintf("/api/v1/escalations/%.0f/", at(t, a, "results.0.id"))
	w.send(t, "PATCH", id, w.Admin(t), `{"status":"resolved","resolution_notes":"on oxygen"}`).expect(t, 200)
	w.signed(t, oxygen("Dying", 70, now())).expect(t, 200)

	first, level, handling := w.triageRow(t, dying)
	if level != "critical" || handling != "unanswered" || first != 98 {
		t.Errorf("SpO2 70 just now: %v %s %v", first, level, handling)
	}
	second, level, handling := w.triageRow(t, handled)
	if level != "critical" || handling != "handled" || second >= first || second < 76 || second > 85 {
		t.Errorf("SpO2 71 two hours ago, answered: %v %s %v", second, level, handling)
	}
	third, level, handling := w.triageRow(t, warned)
	if level != "warning" || handling != nil || third > 75 {
		t.Errorf("six warnings: %v %s %v", third, level, handling)
	}
	var order []any
	list, _ := at(t, w.get(t, "/api/v1/triage/patients/?page_size=100", w.Admin(t)).expect(t, 200), "results").([]any)
	for _, row := range list {
		if id := row.(map[string]any)["patient_id"]; id == dying || id == handled || id == warned {
			order = append(order, id)
		}
	}
	if !slices.Equal(order, []any{dying, handled, warned}) {
		t.Errorf("the list is in the order %v", order)
	}
}

// A manual entry by the patient does not resolve a reading taken by staff.
func wardStanding(t *testing.T, w ward) {
	patient := w.enrol(t, "Typed", nil)
	portal := w.portal(t, "typed", patient)
	w.post(t, ingestion+"blood-pressure/", w.Admin(t), bloodPressure(patient, 204, 124, now().Add(-30*time.Minute))).expect(t, 201)
	for i := range 3 {
		a := w.post(t, ingestion+"blood-pressure/", portal, bloodPressure(patient, 122, 78, now().Add(time.Duration(i-10)*time.Minute))).expect(t, 201)
		wantAt(t, a, object{"origin": "patient"})
	}
	w.wantAlerts(t, "typed", patient, "critical blood_pressure active")
	for i := range 2 {
		w.signed(t, cuff("Typed", 121, 77, now().Add(time.Duration(i-5)*time.Minute))).expect(t, 200)
	}
	w.wantAlerts(t, "measured", patient, "critical blood_pressure auto_resolved")
}

// A late reading is evaluated against the readings measured since.
func wardLate(t *testing.T, w ward) {
	days := func(n int) time.Time { return now().AddDate(0, 0, -n) }
	patient := w.enrol(t, "Late", nil)
	for _, n := range []int{8, 6, 3, 1} {
		w.signed(t, cuff("Late", 124, 78, days(n))).expect(t, 200)
	}
	w.post(t, ingestion+"blood-pressure/", w.Admin(t), bloodPressure(patient, 188, 110, days(10))).expect(t, 201)
	w.wantStat(t, "superseded", patient, 0)
	a := w.get(t, "/api/v1/alerts/?patient_id="+patient, w.Admin(t)).expect(t, 200)
	wantAt(t, a, object{"count": 1.0, "results.0.late": true, "results.0.status": "auto_resolved", "results.0.resolution_reason": "superseded"})
	if _, level, _ := w.triageRow(t, patient); level == "critical" {
		t.Error("a critical reading of ten days ago with four normal ones since is in the critical band")
	}

	alone := w.enrol(t, "Alone", nil)
	w.post(t, "/api/v1/devices/assign/", w.Admin(t), object{
		"device_id": "BP-Alone", "patient_id": alone, "device_type": "blood_pressure", "assigned_at": days(30).Format(time.RFC3339),
	}).expect(t, 200)
	w.signed(t, cuff("Alone", 188, 110, days(10))).expect(t, 200)
	w.wantStat(t, "late, nothing since, from a clock that nothing proves", alone, 1)
	a = w.get(t, "/api/v1/alerts/?patient_id="+alone, w.Admin(t)).expect(t, 200)
	wantAt(t, a, object{"count": 1.0, "results.0.late": true, "results.0.status": "active", "results.0.level": "critical"})
}

// Another person stood on the scale; pounds arrived as kilograms.
func wardScales(t *testing.T, w ward) {
	ago := func(hours int) time.Time { return now().Add(-time.Duration(hours) * time.Hour) }
	for name, story := range map[string]struct{ own, odd float64 }{"Spouse": {88, 62}, "Pounds": {80, 176.4}} {
		patient := w.enrol(t, name, nil)
		for i := 5; i > 0; i-- {
			w.signed(t, weighing(name, story.own, ago(24*i))).expect(t, 200)
		}
		odd := text(t, w.signed(t, weighing(name, story.odd, ago(2))).expect(t, 200), "observation_id")
		shown := w.get(t, ingestion+"observations/"+odd+"/", w.Admin(t)).expect(t, 200)
		wantAt(t, shown, object{"review_state": "suspect", "fhir_status": nil})
		w.wantAlerts(t, name, patient, "warning suspect_reading active")
		w.signed(t, weighing(name, story.own, ago(1))).expect(t, 200)
		confirmed := w.post(t, ingestion+"observations/"+odd+"/confirm/", w.Admin(t), object{"notes": "it was the patient"}).expect(t, 200)
		wantAt(t, confirmed, object{"review_state": "confirmed", "confirmed_by": adminEmail, "fhir_status": "pending"})
	}
	twice := w.enrol(t, "Twice", nil)
	for i := 5; i > 0; i-- {
		w.signed(t, weighing("Twice", 88, ago(24*i))).expect(t, 200)
	}
	first := text(t, w.signed(t, weighing("Twice", 71, ago(3))).expect(t, 200), "observation_id")
	second := text(t, w.signed(t, weighing("Twice", 71.9, ago(1))).expect(t, 200), "observation_id")
	for _, id := range []string{first, second} {
		wantAt(t, w.get(t, ingestion+"observations/"+id+"/", w.Admin(t)), object{"review_state": "confirmed"})
	}
	if _, level, _ := w.triageRow(t, twice); level == "no_data" {
		t.Error("a confirmed weight leaves the level at no_data")
	}
}

// Three weight rules at once.
func wardWeight(t *testing.T, w ward) {
	day := now().Truncate(24*time.Hour).Add(12*time.Hour).AddDate(0, 0, -1)
	const pound = 0.45359237
	kg := func(base, pounds float64) float64 { return float64(int((base+pounds*pound)*100+0.5)) / 100 }

	patient := w.enrol(t, "Overnight", nil)
	w.signed(t, weighing("Overnight", 80, day.AddDate(0, 0, -1))).expect(t, 200)
	w.signed(t, weighing("Overnight", kg(80, 3.2), day)).expect(t, 200)
	a := w.get(t, "/api/v1/alerts/?patient_id="+patient, w.Admin(t)).expect(t, 200)
	wantAt(t, a, object{"count": 1.0, "results.0.level": "warning", "results.0.type": "weight", "results.0.parameter": "weight_daily_change"})

	patient = w.enrol(t, "Week", nil)
	w.signed(t, weighing("Week", 80, day.AddDate(0, 0, -7).Add(-5*time.Minute))).expect(t, 200)
	w.signed(t, weighing("Week", kg(80, 6), day)).expect(t, 200)
	a = w.get(t, "/api/v1/alerts/?patient_id="+patient, w.Admin(t)).expect(t, 200)
	wantAt(t, a, object{"count": 1.0, "results.0.level": "warning", "results.0.parameter": "weight_change"})

	patient = w.enrol(t, "Creep", nil)
	w.send(t, "PUT", "/api/v1/patients/"+patient+"/vital-config/", w.Admin(t), `{"weight":{"target_kg":80},"reason":"dry weight"}`).expect(t, 200)
	for i := 0; i <= 14; i += 2 {
		w.signed(t, weighing("Creep", 80+0.3*float64(i), day.AddDate(0, 0, i-14))).expect(t, 200)
	}
	a = w.get(t, "/api/v1/alerts/?page_size=100&patient_id="+patient, w.Admin(t)).expect(t, 200)
	if !strings.Contains(string(a.body), `"weight_over_target"`) {
		t.Errorf("4.2 kg over the dry weight in 14 days raise nothing\n%s", a.body)
	}
}

// A danger that a cuff with a stopped clock reports is an emergency, with a question about the clock.
func wardClock(t *testing.T, w ward) {
	patient := w.enrol(t, "Clock", nil)
	w.signed(t, cuff("Clock", 190, 125, time.Date(1970, 1, 1, 0, 3, 0, 0, time.UTC))).expect(t, 200)
	w.wantStat(t, "1970", patient, 1)
	w.wantAlerts(t, "1970", patient, "warning device_clock active", "critical blood_pressure active")
}
