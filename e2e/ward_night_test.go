package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Night-shift stories of a nurse who double-checks the system.

func ago(minutes int) time.Time { return now().Add(-time.Duration(minutes) * time.Minute) }

// vendor delivers an event as another device vendor does.
func (w ward) vendor(t testing.TB, vendor, body string) answer {
	t.Helper()
	return w.send(t, http.MethodPost, "/api/v1/gateway/"+vendor+"/", "", body, "X-Api-Key", vendorSecret)
}

func tenoviOxygen(device, patient string, spo2 int, at time.Time) string {
	return fmt.Sprintf(`{"metric":"spO2","device_name":"Tenovi Pulse Ox","hwi_device_id":%q,"patient_id":%q,"hardware_uuid":"A1B2C3D4E5F6","sensor_code":"11","value_1":"%d","value_2":null,
		"created":%q,"timestamp":%q,"timezone_offset":-5,"estimated_timestamp":false,"filter_params":{"measurement_index":1}}`,
		device, patient, spo2, at.Format(time.RFC3339), at.Format(time.RFC3339))
}

func (w ward) decide(t testing.TB, what, event string) answer {
	t.Helper()
	return w.post(t, ingestion+"quarantine/"+event+"/"+what+"/", w.Admin(t), object{"notes": "seen", "reason": "not true"})
}

func (w ward) resolveEscalations(t testing.TB, patient string) {
	t.Helper()
	a := w.get(t, "/api/v1/escalations/?status=open&patient_id="+patient, w.Admin(t)).expect(t, 200)
	results, _ := at(t, a, "results").([]any)
	for _, one := range results {
		w.send(t, "PATCH", fmt.Sprintf("/api/v1/escalations/%.0f/", one.(map[string]any)["id"]), w.Admin(t), `{"status":"resolved","resolution_notes":"called"}`).expect(t, 200)
	}
}

// A patient enters glucose 40 while 50 is snoozed: a worse value alerts, also when entered manually.
func nightGlucose(t *testing.T, w ward) {
	patient := w.enrol(t, "Sweet", nil)
	portal := w.portal(t, "sweet", patient)
	w.signed(t, event("Sweet", "GL-Sweet", "blood_glucose", "mg/dL", object{"glucose": 50}, ago(40))).expect(t, 200)
	w.acknowledge(t, patient)
	w.resolveEscalations(t, patient)
	w.snooze(t, patient, "blood_glucose", true).expect(t, 201)
	typed := func(mgdl float64, at time.Time) {
		t.Helper()
		w.post(t, ingestion+"blood-glucose/", portal, object{"patient_id": patient, "glucose_mg_dl": mgdl, "measured_at": at.Format(time.RFC3339)}).expect(t, 201)
	}
	typed(48, ago(20))
	w.wantStat(t, "48 is known", patient, 0)
	typed(40, ago(10))
	w.wantStat(t, "40 is worse", patient, 1)
	if alert := w.alerts(t, patient, "")[0]; alert["snoozed"] != false {
		t.Errorf("the alert is %v", alert)
	}
}

// SpO2 84 from another vendor between normal values entered by the patient: manual entries do not resolve it.
func nightOxygen(t *testing.T, w ward) {
	patient := w.enrol(t, "Breath", nil)
	portal := w.portal(t, "breath", patient)
	typed := func(at time.Time) {
		t.Helper()
		w.post(t, ingestion+"pulse-oximetry/", portal, object{"patient_id": patient, "spo2": 97, "measured_at": at.Format(time.RFC3339)}).expect(t, 201)
	}
	typed(ago(30))
	w.vendor(t, "tenovi", tenoviOxygen("OX-Breath", "GW-Breath", 84, ago(20))).expect(t, 200)
	for i := range 3 {
		typed(ago(10 - i))
	}
	w.wantAlerts(t, "typed", patient, "critical pulse_oximetry active")
	w.wantStat(t, "typed", patient, 1)
	if _, level, handling := w.triageRow(t, patient); level != "critical" || handling != "unanswered" {
		t.Errorf("ranked %s %v", level, handling)
	}
	w.acknowledge(t, patient)
	w.resolveEscalations(t, patient)
	if _, level, handling := w.triageRow(t, patient); level != "critical" || handling != "handled" {
		t.Errorf("answered it ranks %s %v", level, handling)
	}
}

// Two cuffs of one patient disagree. Both are equally reliable, so the escalation stays open for a clinician.
func nightTwoCuffs(t *testing.T, w ward) {
	patient := w.enrol(t, "Cuffs", nil)
	other := func(systolic float64, at time.Time) object {
		return event("Cuffs", "BP-Second", "blood_pressure", "mmHg", object{"systolic": systolic, "diastolic": 78}, at)
	}
	w.signed(t, cuff("Cuffs", 204, 124, ago(10))).expect(t, 200)
	w.signed(t, other(122, ago(9))).expect(t, 200)
	w.wantAlerts(t, "one normal", patient, "critical blood_pressure active")
	w.signed(t, cuff("Cuffs", 206, 124, ago(8))).expect(t, 200)
	w.signed(t, other(124, ago(7))).expect(t, 200)
	w.wantAlerts(t, "by turns", patient, "critical blood_pressure active", "critical blood_pressure active")
	w.signed(t, other(126, ago(6))).expect(t, 200)
	w.wantAlerts(t, "two normal", patient, "critical blood_pressure auto_resolved", "critical blood_pressure auto_resolved")
	w.wantStat(t, "a person closes it", patient, 1)
}

// A retracted suspect weight can no longer be confirmed, and does not corroborate another one.
func nightScale(t *testing.T, w ward) {
	patient := w.enrol(t, "Twins", nil)
	for day := 6; day > 0; day-- {
		w.signed(t, weighing("Twins", 91.3, ago(day*1440))).expect(t, 200)
	}
	odd := text(t, w.signed(t, weighing("Twins", 70.2, ago(60))).expect(t, 200), "observation_id")
	w.wantAlerts(t, "in doubt", patient, "warning suspect_reading active")
	w.post(t, ingestion+"observations/"+odd+"/entered-in-error/", w.Admin(t), object{"reason": "the twin"}).expect(t, 200)
	w.post(t, ingestion+"observations/"+odd+"/confirm/", w.Admin(t), object{"notes": "or not"}).expect(t, 400)
	w.wantAlerts(t, "withdrawn", patient, "warning suspect_reading resolved")
	second := text(t, w.signed(t, weighing("Twins", 70.5, ago(30))).expect(t, 200), "observation_id")
	wantAt(t, w.get(t, ingestion+"observations/"+second+"/", w.Admin(t)), object{"review_state": "suspect"})
	wantAt(t, w.post(t, ingestion+"observations/"+second+"/confirm/", w.Admin(t), object{}).expect(t, 200), object{"review_state": "confirmed"})
	w.post(t, ingestion+"observations/"+second+"/entered-in-error/", w.Admin(t), object{"reason": "the twin again"}).expect(t, 200)
	for _, alert := range w.alerts(t, patient, "") {
		if alert["status"] != "resolved" {
			t.Errorf("left is %v", alert)
		}
	}
}

// A gain of 3.2 lb measured on a neighbor's scale belongs to no patient until a nurse assigns it.
func nightNeighbour(t *testing.T, w ward) {
	patient, neighbour := w.enrol(t, "Heart", nil), w.enrol(t, "Neighbour", nil)
	w.post(t, "/api/v1/devices/assign/", w.Admin(t), object{
		"device_id": "SC-Next", "patient_id": neighbour, "device_type": "weight", "assigned_at": ago(5 * 1440).Format(time.RFC3339),
	}).expect(t, 200)
	w.signed(t, weighing("Heart", 80, ago(1440))).expect(t, 200)
	body := event("Heart", "SC-Next", "weight", "kg", object{"weight": 81.45}, ago(5))
	wantAt(t, w.signed(t, body).expect(t, 200), object{"status": "quarantined", "reason": "patient_mismatch"})
	w.post(t, ingestion+"weight/", w.Admin(t), object{
		"patient_id": patient, "weight_kg": 81.45, "device_id": "SC-Next", "measured_at": ago(5).Format(time.RFC3339),
	}).expect(t, 400)
	for _, who := range []string{patient, neighbour} {
		w.wantAlerts(t, "mismatch", who)
	}
}

// An implausible reading of an archived patient cannot be confirmed until the patient is active again.
func nightArchived(t *testing.T, w ward) {
	patient := w.enrol(t, "Gone", nil)
	w.signed(t, oxygen("Gone", 44, ago(5))).expect(t, 400)
	id := w.alerts(t, patient, "")[0]["quarantine_id"].(string)
	w.post(t, "/api/v1/patients/"+patient+"/archive/", w.Admin(t), object{"reason": "hospital", "confirm": true}).expect(t, 200)
	w.decide(t, "confirm", id).expect(t, 400)
	w.post(t, "/api/v1/patients/"+patient+"/unarchive/", w.Admin(t), object{}).expect(t, 200)
	wantAt(t, w.decide(t, "confirm", id).expect(t, 201), object{"spo2": 44.0, "review_state": "confirmed"})
	w.wantStat(t, "back", patient, 1)
}

// New thresholds reevaluate the triage row, and a bound below the last value alerts; alerts raised under the old ones stay open for a clinician.
func nightThresholds(t *testing.T, w ward) {
	patient := w.enrol(t, "Bounds", nil)
	w.signed(t, cuff("Bounds", 150, 85, ago(5))).expect(t, 200)
	w.wantAlerts(t, "150/85", patient, "warning blood_pressure active")
	set := func(body string) {
		t.Helper()
		w.send(t, "PUT", "/api/v1/patients/"+patient+"/vital-config/", w.Admin(t), body).expect(t, 200)
	}
	set(`{"blood_pressure":{"systolic_high":135,"systolic_critical":148},"reason":"aneurysm"}`)
	if _, level, handling := w.triageRow(t, patient); level != "critical" || handling != "unanswered" {
		t.Errorf("by tighter bounds it ranks %s %v", level, handling)
	}
	set(`{"blood_pressure":{"systolic_high":165,"systolic_critical":190},"reason":"operated"}`)
	w.wantAlerts(t, "they stay", patient, "critical blood_pressure active", "warning blood_pressure active")
	w.signed(t, cuff("Bounds", 152, 85, ago(2))).expect(t, 200)
	w.wantAlerts(t, "normal by the new bounds", patient, "critical blood_pressure active", "warning blood_pressure auto_resolved")
	w.signed(t, cuff("Bounds", 151, 85, ago(1))).expect(t, 200)
	w.wantAlerts(t, "normal again", patient, "critical blood_pressure auto_resolved", "warning blood_pressure auto_resolved")
	w.resolveEscalations(t, patient)
	if _, level, _ := w.triageRow(t, patient); level == "critical" {
		t.Errorf("by wider bounds it ranks %s", level)
	}
}

// A critical value in the same minute in which the escalation was closed opens another one.
func nightSameMinute(t *testing.T, w ward) {
	patient := w.enrol(t, "Minute", nil)
	w.signed(t, oxygen("Minute", 82, ago(1))).expect(t, 200)
	w.acknowledge(t, patient)
	w.resolveEscalations(t, patient)
	w.wantStat(t, "closed", patient, 0)
	w.signed(t, oxygen("Minute", 82, now())).expect(t, 200)
	w.wantStat(t, "the same again", patient, 1)
	if _, _, handling := w.triageRow(t, patient); handling != "unanswered" {
		t.Errorf("ranked %v", handling)
	}
}

// Thirty readings of half a day, those of each hour in any order, give the same result as in order of measurement.
func nightBatch(t *testing.T, w ward) {
	patient := w.enrol(t, "Batch", nil)
	var events []object
	for i := range 30 {
		systolic := 124.0
		if i%5 == 2 && i < 25 {
			systolic = 192
		}
		events = append(events, cuff("Batch", systolic, 78, ago(600-i*20)))
	}
	random := rand.New(rand.NewPCG(7, 7))
	for hour := range slices.Chunk(events, 3) {
		random.Shuffle(len(hour), func(i, k int) { hour[i], hour[k] = hour[k], hour[i] })
	}
	for _, e := range events {
		w.signed(t, e).expect(t, 200)
	}
	list := w.alerts(t, patient, "")
	if len(list) != 5 {
		t.Errorf("%d alerts", len(list))
	}
	for _, alert := range list {
		if alert["status"] != "auto_resolved" {
			t.Errorf("left is %v", alert)
		}
	}
	wantAt(t, w.get(t, "/api/v1/patients/"+patient+"/vitals/summary/", w.Admin(t)).expect(t, 200), object{"periods.0.blood_pressure.readings": 30.0})
}

// A record created in the dashboard is processed like any other reading.
func nightDashboard(t *testing.T, w ward) {
	patient := w.enrol(t, "Board", nil)
	w.post(t, "/api/collections/observations/records", w.Superuser(t), object{
		"patient": patient, "observation_type": "pulse_oximetry", "spo2": 41, "measured_at": ago(3).Format("2006-01-02T15:04:05.000000Z"),
	}).expect(t, 400)
	w.wantAlerts(t, "41 in the dashboard", patient, "critical implausible_reading active")
	w.wantStat(t, "41 in the dashboard", patient, 1)
}

// A pulse of 24 with 118/76 from the other vendor: the plausible part is stored, the other raises an emergency, and once
// confirmed they are one reading.
func nightTelli(t *testing.T, w ward) {
	patient := w.enrol(t, "Telli", nil)
	w.post(t, "/api/v1/devices/assign/", w.Admin(t), object{
		"device_id": "telli-" + patient[:8], "patient_id": patient, "device_type": "blood_pressure", "assigned_at": ago(1440).Format(time.RFC3339),
	}).expect(t, 200)
	w.vendor(t, "telli", fmt.Sprintf(`{"data":{"systolic":118,"diastolic":76,"pulse":24},"deviceId":%q,"readingType":"BloodPressure","time":"%d","mem":"0","tzOffsetMinutes":"-300","genVer":"2","devdata":{"r":"3","batt":"9","cycles":"0"}}`,
		"telli-"+patient[:8], ago(5).UnixMilli())).expect(t, 200)
	w.wantAlerts(t, "pulse 24", patient, "critical implausible_reading active")
	w.wantStat(t, "pulse 24", patient, 1)
	confirmed := w.decide(t, "confirm", w.alerts(t, patient, "")[0]["quarantine_id"].(string)).expect(t, 201)
	wantAt(t, confirmed, object{"systolic": 118.0, "pulse": 24.0})
	w.wantAlerts(t, "confirmed", patient, "critical pulse active", "critical implausible_reading resolved")
}

// Sixty implausible readings over concurrent connections give one alert; each is decided on separately, also concurrently.
func nightFlood(t *testing.T, w ward) {
	patient := w.enrol(t, "Flood", nil)
	var run sync.WaitGroup
	for worker := range 4 {
		run.Go(func() {
			for i := range 15 {
				if a := w.signed(t, cuff("Flood", float64(400+worker*15+i), 90, now().Add(-time.Duration(worker*15+i)*time.Second))); a.status != 400 {
					t.Errorf("answered %d\n%s", a.status, a.body)
				}
			}
		})
	}
	run.Wait()
	list := w.alerts(t, patient, "")
	if len(list) != 1 || list[0]["reported_count"] != 60.0 {
		t.Fatalf("%d alerts: %v", len(list), list)
	}
	w.wantStat(t, "flood", patient, 1)
	quarantine := w.get(t, ingestion+"quarantine/?page_size=100&device_id=BP-Flood&status=rejected", w.Admin(t)).expect(t, 200)
	kept, _ := at(t, quarantine, "results").([]any)
	if len(kept) != 60 {
		t.Fatalf("%d are quarantined", len(kept))
	}
	for worker := range 4 {
		run.Go(func() {
			for i := worker; i < len(kept); i += 4 {
				if a := w.decide(t, "discard", kept[i].(map[string]any)["id"].(string)); a.status != 200 {
					t.Errorf("answered %d\n%s", a.status, a.body)
				}
			}
		})
	}
	run.Wait()
	w.wantAlerts(t, "all discarded", patient, "critical implausible_reading resolved")
	w.wantStat(t, "all discarded", patient, 0)
}

// A device clock one hour ahead, under a snooze and after it: the open alert is announced when the snooze ends, and a
// dismissed one stays closed.
func nightFastClock(t *testing.T, w ward) {
	patient := w.enrol(t, "Fast", nil)
	w.signed(t, cuff("Fast", 186, 84, ago(30))).expect(t, 200)
	w.acknowledge(t, patient)
	w.resolveEscalations(t, patient)
	snooze := at(t, w.snooze(t, patient, "blood_pressure", true).expect(t, 201), "id")
	w.signed(t, cuff("Fast", 189, 84, now().Add(time.Hour))).expect(t, 400)
	w.wantStat(t, "snoozed", patient, 0)
	if list := w.alerts(t, patient, "&type=device_clock"); len(list) != 1 || list[0]["status"] != "active" {
		t.Errorf("about the clock: %v", list)
	}
	w.signed(t, object{"event_type": "device.connected", "device_id": "BP-Fast", "timestamp": now().Add(2 * time.Second).Format(time.RFC3339)}).expect(t, 200)
	if list := w.alerts(t, patient, "&type=device_clock"); len(list) != 1 || list[0]["status"] != "active" {
		t.Errorf("connected, about the clock: %v", list)
	}
	w.post(t, fmt.Sprintf("/api/v1/patients/%s/snoozes/%v/end/", patient, snooze), w.Admin(t), object{}).expect(t, 200)
	w.wantStat(t, "no longer snoozed", patient, 1)
	list := w.alerts(t, patient, "&type=device_clock")
	w.decide(t, "discard", list[0]["quarantine_id"].(string)).expect(t, 200)
	w.wantStat(t, "dismissed", patient, 0)
}

// After a move, the patient's weights are evaluated by the days of the new time zone.
func nightMoved(t *testing.T, w ward) {
	patient := w.enrol(t, "Moved", object{"time_zone": "Pacific/Auckland"})
	body := w.get(t, "/api/v1/patients/"+patient+"/", w.Admin(t)).expect(t, 200)
	zone, err := time.LoadLocation("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	there := now().In(zone)
	late := time.Date(there.Year(), there.Month(), there.Day()-3, 0, 5, 0, 0, zone) // the second of two days there, the first of two here
	w.signed(t, weighing("Moved", 80, late)).expect(t, 200)
	changed := object{"time_zone": w.zone.String()}
	for _, field := range []string{"first_name", "last_name", "date_of_birth", "gender", "gateway_patient_id"} {
		changed[field] = at(t, body, field)
	}
	w.send(t, "PUT", "/api/v1/patients/"+patient+"/", w.Admin(t), encode(t, changed)).expect(t, 200)
	next := late.In(w.zone)
	end := time.Date(next.Year(), next.Month(), next.Day()+1, 23, 50, 0, 0, w.zone) // the day after, in the zone of the practice
	w.signed(t, weighing("Moved", 81.5, end)).expect(t, 200)
	if list := w.alerts(t, patient, "&type=weight"); len(list) != 1 || list[0]["parameter"] != "weight_daily_change" {
		t.Errorf("moved: %v", list)
	}
}

// Two nurses decide on the same event concurrently: exactly one succeeds.
func nightTwoNurses(t *testing.T, w ward) {
	patient := w.enrol(t, "Nurses", nil)
	w.signed(t, oxygen("Nurses", 47, ago(1))).expect(t, 400)
	id := w.alerts(t, patient, "")[0]["quarantine_id"].(string)
	var run sync.WaitGroup
	var answers [2]answer
	for i, what := range []string{"confirm", "discard"} {
		run.Go(func() { answers[i] = w.decide(t, what, id) })
	}
	run.Wait()
	switch {
	case answers[0].status == 201 && answers[1].status == 400:
		w.wantStat(t, "confirmed", patient, 1)
	case answers[0].status == 400 && answers[1].status == 200:
		w.wantStat(t, "discarded", patient, 0)
	default:
		t.Errorf("answered %d and %d\n%s\n%s", answers[0].status, answers[1].status, answers[0].body, answers[1].body)
	}
}

// An implausible value that the patient typed pages no one and is held for a correction; a clinician may confirm it.
func nightPortal(t *testing.T, w ward) {
	patient := w.enrol(t, "Portal", nil)
	portal := w.portal(t, "portal", patient)
	typed := func(pulse float64) answer {
		return w.post(t, ingestion+"blood-pressure/", portal, object{"patient_id": patient, "systolic": 96, "diastolic": 54, "pulse": pulse, "measured_at": ago(4).Format(time.RFC3339)})
	}
	if a := typed(26).expect(t, 400); !strings.Contains(string(a.body), "pulse") {
		t.Errorf("answered %s", a.body)
	}
	w.wantStat(t, "typed", patient, 0)
	w.signed(t, event("Portal", "BP-Portal", "blood_pressure", "mmHg", object{"systolic": 118, "diastolic": 76, "pulse": 70}, ago(1))).expect(t, 200)
	if list := w.alerts(t, patient, "&type=implausible_reading"); len(list) != 0 {
		t.Fatalf("alerts %v", list)
	}
	var held string
	if err := w.database(t).NewQuery(`SELECT id FROM gateway_events WHERE patient = '` + patient + `'`).Row(&held); err != nil {
		t.Fatal(err)
	}
	wantAt(t, w.decide(t, "confirm", held).expect(t, 201), object{"origin": "patient", "pulse": 26.0})
	w.wantStat(t, "confirmed", patient, 1)
}

// An acknowledged critical cuff reading, followed by a critical and a normal manual entry: the end of the snooze announces
// the cuff reading.
func nightTypedAtTheEnd(t *testing.T, w ward) {
	patient := w.enrol(t, "Ended", nil)
	portal := w.portal(t, "ended", patient)
	w.signed(t, cuff("Ended", 204, 124, ago(50))).expect(t, 200)
	w.acknowledge(t, patient)
	snooze := at(t, w.snooze(t, patient, "blood_pressure", true).expect(t, 201), "id")
	for i, systolic := range []float64{184, 121, 119} {
		w.post(t, ingestion+"blood-pressure/", portal, bloodPressure(patient, systolic, 78, ago(40-i*10))).expect(t, 201)
	}
	db := w.database(t)
	told := func() (n int) {
		t.Helper()
		err := db.NewQuery(`SELECT COUNT(*) FROM announcements WHERE patient = '` + patient + `' AND key LIKE '% again %'`).Row(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := told()
	w.post(t, fmt.Sprintf("/api/v1/patients/%s/snoozes/%v/end/", patient, snooze), w.Admin(t), object{}).expect(t, 200)
	if got := told() - before; got != 1 {
		t.Errorf("announced %d times at the end of the snooze", got)
	}
}
