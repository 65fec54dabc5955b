package routes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// ward is a patient with a cuff, and users of every source of readings.
type ward struct {
	*clinic
	patient string
	portal  *collections.User
}

func newWard(t testing.TB, changes object) *ward {
	t.Helper()
	c := newIngestingClinic(t)
	patient := object{"gateway_patient_id": "GW-1"}
	for name, value := range changes {
		patient[name] = value
	}
	id := c.enroll(patient)
	c.worked(id, "T-1")
	return &ward{c, id, vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(id))}
}

// addReading stores a reading from a source (device, staff or patient) and returns its id.
func (w *ward) addReading(entrance string, systolic, diastolic int, at time.Time) string {
	w.t.Helper()
	body := object{"patient_id": w.patient, "systolic": systolic, "diastolic": diastolic, "measured_at": at.Format(time.RFC3339Nano)}
	switch entrance {
	case "device":
		device := fmt.Sprint("BP-", at.Unix()) // one that goes back in time would be doubted
		w.worked(w.patient, device)
		event := strings.Replace(cuffEvent(device, "GW-1", systolic, at), `"diastolic":80`, fmt.Sprintf(`"diastolic":%d`, diastolic), 1)
		return w.postEvent(w.t, event).want(200).wantAt(object{"status": "accepted"}).at("observation_id").(string)
	case "patient":
		return w.requestAs(w.portal, "POST", "/ingestion/blood-pressure/", body).want(201).wantAt(object{"origin": "patient"}).at("id").(string)
	}
	body["device_id"] = "BP-1" // a typed reading may name it, too
	return w.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", body).want(201).wantAt(object{"origin": "staff"}).at("id").(string)
}

// alertStates returns the patient's alerts by measurement time, as "value level status" with any special state.
func (w *ward) alertStates() (list []string) {
	w.t.Helper()
	for _, alert := range w.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", w.patient, "page_size", "100"), nil).results() {
		if alert["level"] == "normal" {
			continue
		}
		text := fmt.Sprintf("%v %v %v", alert["value"], alert["level"], alert["status"])
		if alert["late"] == true {
			text += " late"
		}
		if reason, given := alert["resolution_reason"].(string); given {
			text += " " + reason
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func (w *ward) wantAlertStates(what string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if got := w.alertStates(); !slices.Equal(got, want) {
		w.t.Errorf("%s: the alerts are %q, want %q", what, got, want)
	}
}

// statEscalations returns the states of the escalations that the service opened.
func (w *ward) statEscalations() []string {
	return w.queryRows(w.t, `SELECT priority || ' ' || status FROM escalations WHERE created_by = 'system' ORDER BY id`)
}

// announcements returns the announcements by kind.
func (w *ward) announcements() []string {
	return w.queryRows(w.t, `SELECT kind || ' ' || severity FROM announcements WHERE patient != '' ORDER BY rowid`)
}

func (w *ward) score() (score float64, level string) {
	w.t.Helper()
	place := w.request(authz.Nurse, "GET", "/triage/patients/"+query("page_size", "100"), nil).results()[0]
	return place["risk_score"].(float64), place["risk_level"].(string)
}

func (w *ward) retract(id string) {
	w.t.Helper()
	w.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "the spouse's"}).want(200)
}

// A device's critical reading is resolved by readings from devices and staff, never by typed readings of the patient;
// the patient's own critical reading by any.
func TestStoryTypedNormals(t *testing.T) {
	for _, entrance := range []string{"device", "staff"} {
		for _, order := range [][]string{{"patient", "patient", "device", "staff"}, {"device", "patient", "patient", "device"}, {"staff", "patient", "staff", "patient"}} {
			w := newWard(t, nil)
			w.addReading(entrance, 204, 124, w.now)
			settling := 0
			for i, by := range order {
				w.now = w.now.Add(2 * time.Minute)
				w.addReading(by, 128-i, 78, w.now)
				if by != "patient" {
					settling++
				}
				want := "204 critical active"
				if settling >= 2 {
					want = "204 critical auto_resolved"
				}
				w.wantAlertStates(fmt.Sprintf("%s, then %v", entrance, order[:i+1]), want)
			}
		}
	}
	w := newWard(t, nil)
	w.addReading("device", 204, 124, w.now)
	for range 6 {
		w.now = w.now.Add(time.Minute)
		w.addReading("patient", 118, 74, w.now)
	}
	w.wantAlertStates("six typed normals", "204 critical active")
	if score, level := w.score(); level != "critical" || score < 76 {
		t.Errorf("six typed normals make it %v %s", score, level)
	}

	w = newWard(t, nil)
	w.addReading("patient", 204, 124, w.now)
	for range 2 {
		w.now = w.now.Add(time.Minute)
		w.addReading("patient", 118, 74, w.now)
	}
	w.wantAlertStates("a typed reading is resolved by typed ones", "204 critical auto_resolved")
}

// A critical reading ten days late is shown in the app only if four normal ones were stored since; otherwise it sends a
// push, without a stat escalation.
func TestStoryLateReading(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe"} {
		w := newWard(t, object{"time_zone": zone})
		for day := range 4 {
			w.addReading("device", 122+day, 78, w.now.AddDate(0, 0, day-8))
		}
		before, _ := w.score()
		w.addReading("device", 188, 110, w.now.AddDate(0, 0, -10))
		w.wantAlertStates("late, and normals since", "188 critical auto_resolved late superseded")
		if stats, notified := w.statEscalations(), w.announcements(); len(stats) != 0 || !slices.Equal(notified, []string{"reading_superseded critical"}) {
			t.Errorf("%s: escalations %q, notified %q", zone, stats, notified)
		}
		if score, _ := w.score(); score != before {
			t.Errorf("%s: a superseded reading moves the score from %v to %v", zone, before, score)
		}
		alert := w.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", w.patient), nil).results()[0]
		if alert["resolved_by"] != "system" || alert["acknowledged"] != true {
			t.Errorf("%s: %v", zone, alert)
		}

		w = newWard(t, object{"time_zone": zone})
		w.addReading("device", 188, 110, w.now.AddDate(0, 0, -10))
		w.wantAlertStates("late, and nothing since", "188 critical active late")
		if stats, notified := w.statEscalations(), w.announcements(); len(stats) != 0 || !slices.Equal(notified, []string{"alert_raised critical"}) {
			t.Errorf("%s: escalations %q, notified %q", zone, stats, notified)
		}
		w.addReading("device", 232, 130, w.now)
		if stats := w.statEscalations(); !slices.Equal(stats, []string{"stat open"}) {
			t.Errorf("%s: a critical reading of now opens %q", zone, stats)
		}
	}
}

// The age from which a reading is late, and which readings supersede it.
func TestLateReadings(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name  string
		age   time.Duration
		since string // source of a normal reading measured an hour later, "" for none
		want  string
		stats int
	}{
		{"a day", day, "", "188 critical active", 1},
		{"a day and a second", day + time.Second, "", "188 critical active late", 0},
		{"with a device's since", day + time.Second, "device", "188 critical auto_resolved late superseded", 0},
		{"with staff's since", 3 * day, "staff", "188 critical auto_resolved late superseded", 0},
		{"with what the patient typed since", 3 * day, "patient", "188 critical active late", 0},
		{"an hour old with one normal since", time.Hour + time.Minute, "device", "188 critical active", 1},
	} {
		w := newWard(t, nil)
		if test.since != "" {
			w.addReading(test.since, 120, 80, w.now.Add(time.Hour-test.age))
		}
		w.addReading("device", 188, 110, w.now.Add(-test.age))
		w.wantAlertStates(test.name, test.want)
		if stats := w.statEscalations(); len(stats) != test.stats {
			t.Errorf("%s: %q", test.name, stats)
		}
	}
	// Another kind does not supersede a reading; a pulse supersedes a pulse of any device.
	w := newWard(t, nil)
	w.request(authz.Nurse, "POST", "/ingestion/pulse-oximetry/", object{"patient_id": w.patient, "spo2": 97, "pulse": 70, "measured_at": w.now.Format(time.RFC3339)}).want(201)
	w.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": w.patient, "systolic": 188, "diastolic": 110, "pulse": 140, "measured_at": w.now.AddDate(0, 0, -2).Format(time.RFC3339),
	}).want(201)
	w.wantAlertStates("of two kinds", "188 critical active late", "140 critical auto_resolved late superseded")
}

// Within a day the order of arrival does not matter: alerts and escalations end as if the readings had arrived in order
// of measurement.
func TestOrderOfArrival(t *testing.T) {
	values := [][2]int{{204, 124}, {128, 78}, {150, 92}, {126, 76}, {124, 80}}
	play := func(order []int) string {
		w := newWard(t, nil)
		start := w.now
		for n, i := range order {
			w.now = start.Add(time.Duration(n) * time.Second)
			w.addReading("device", values[i][0], values[i][1], start.Add(time.Duration(i-10)*time.Minute))
		}
		return fmt.Sprint(w.alertStates(), w.statEscalations())
	}
	want := play([]int{0, 1, 2, 3, 4})
	if want != "[150 warning auto_resolved 204 critical auto_resolved] [stat open]" {
		t.Fatal(want)
	}
	random := rand.New(rand.NewPCG(18, 4))
	for range 12 {
		if order := random.Perm(len(values)); play(order) != want {
			t.Errorf("in the order %v it ends as %s, want %s", order, play(order), want)
		}
	}
}

// Several events in one delivery are evaluated in order of measurement; a late one takes the others into account.
func TestStoryBatch(t *testing.T) {
	for _, newestFirst := range []bool{true, false} {
		w := newWard(t, nil)
		var parts []string
		for i, systolic := range []int{188, 122, 124, 126, 128} {
			parts = append(parts, pressure("T-1", "GW-1", w.now.AddDate(0, 0, i-10), systolic))
		}
		if newestFirst {
			slices.Reverse(parts)
		}
		answer := w.sendVendor(t, "tenovi", "["+strings.Join(parts, ",")+"]").wantStatuses("accepted", "accepted", "accepted", "accepted", "accepted")
		first := w.request(authz.Nurse, "GET", "/ingestion/observations/"+answer.delivered()[0]["observation_id"].(string)+"/", nil).want(200)
		if want := map[bool]float64{true: 128, false: 188}[newestFirst]; first.at("systolic") != want {
			t.Errorf("the first answer is about %v, want %v", first.at("systolic"), want)
		}
		w.wantAlertStates("a late batch", "188 critical auto_resolved late superseded")
		if stats, notified := w.statEscalations(), w.announcements(); len(stats) != 0 || !slices.Equal(notified, []string{"reading_superseded critical"}) {
			t.Errorf("escalations %q, notified %q", stats, notified)
		}

		w = newWard(t, nil)
		parts = nil
		for i, systolic := range []int{204, 122, 124} {
			parts = append(parts, pressure("T-1", "GW-1", w.now.Add(time.Duration(i-5)*time.Minute), systolic))
		}
		if newestFirst {
			slices.Reverse(parts)
		}
		w.sendVendor(t, "tenovi", "["+strings.Join(parts, ",")+"]").wantStatuses("accepted", "accepted", "accepted")
		w.wantAlertStates("a batch of today", "204 critical auto_resolved")
	}
	// The later reading is refused, so nothing superseded the late one.
	w := newWard(t, nil)
	late := w.now.AddDate(0, 0, -3)
	rival := pressure("T-1", "GW-1", late.Add(time.Hour), 121)
	other := w.enroll(object{"gateway_patient_id": "GW-2", "first_name": "Bo"})
	w.insert(collections.DeviceAssignments, map[string]any{
		"device_id": "T-1", "patient": other, "assigned_at": collections.FormatInstant(late.Add(time.Minute)), "unassigned_at": "",
	})
	w.sendVendor(t, "tenovi", "["+rival+","+pressure("T-1", "GW-1", late, 188)+"]")
	w.wantAlertStates("the later reading is not stored", "188 critical active late")
	if notified := w.announcements(); !slices.Contains(notified, "alert_raised critical") {
		t.Errorf("notified %q", notified)
	}
}

// Six irregular heartbeat flags in a week are one warning, at the third; after the run a new one raises a new warning.
func TestStoryIrregularHeartbeats(t *testing.T) {
	flag := func(w *ward, at time.Time, systolic int) string {
		body := object{"patient_id": w.patient, "systolic": systolic, "diastolic": 78, "irregular_heartbeat": true, "measured_at": at.Format(time.RFC3339)}
		return w.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", body).want(201).at("id").(string)
	}
	warnings := func(w *ward) (list []object) {
		return w.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", w.patient, "type", "irregular_heartbeat"), nil).results()
	}
	for _, zone := range []string{"America/New_York", "Australia/Lord_Howe"} {
		w := newWard(t, object{"time_zone": zone})
		start := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC) // across the change of clocks
		for day := range 6 {
			w.now = start.AddDate(0, 0, day)
			flag(w, w.now, 120+day)
			if got, want := len(warnings(w)), map[bool]int{true: 1}[day >= 2]; got != want {
				t.Fatalf("%s: %d warnings after %d flags", zone, got, day+1)
			}
		}
		if notified := w.announcements(); !slices.Equal(notified, []string{"alert_raised warning"}) {
			t.Errorf("notified %q", notified)
		}
		if score, level := w.score(); score < 51 || level != "warning" {
			t.Errorf("%s: %v %s", zone, score, level)
		}
		w.request(authz.Nurse, "POST", "/alerts/"+fmt.Sprint(warnings(w)[0]["id"])+"/resolve/", object{}).want(200)
		w.now = start.AddDate(0, 0, 6)
		flag(w, w.now, 119)
		if n := len(warnings(w)); n != 1 {
			t.Errorf("the run continues: %d warnings", n)
		}
		for day := range 3 {
			w.now = start.AddDate(0, 0, 20+day)
			flag(w, w.now, 120+day)
		}
		if list := warnings(w); len(list) != 2 || list[0]["message"] != "Irregular heartbeat reported 3 times within 7 days." || list[0]["value"] != nil {
			t.Errorf("another run: %v", list)
		}
	}
	// Three within seven days, not eight, in any order; a retracted one does not count.
	for _, test := range []struct {
		hours []int
		want  int
	}{
		{[]int{0, 80, 168}, 1}, {[]int{0, 80, 169}, 0}, {[]int{168, 0, 80}, 1}, {[]int{0, 80}, 0}, {[]int{0, 80, 169, 200}, 1}, {[]int{0, 200, 400, 600}, 0},
	} {
		w := newWard(t, nil)
		start := w.now
		w.now = start.Add(700 * time.Hour)
		for i, hour := range test.hours {
			w.now = start.Add(time.Duration(max(hour, slices.Max(test.hours[:i+1]))) * time.Hour)
			flag(w, start.Add(time.Duration(hour)*time.Hour), 120+i)
		}
		if n := len(warnings(w)); n != test.want {
			t.Errorf("flags after %v hours: %d warnings, want %d", test.hours, n, test.want)
		}
	}
	w := newWard(t, nil)
	var ids []string
	start := w.now
	for day := range 4 {
		w.now = start.AddDate(0, 0, day)
		ids = append(ids, flag(w, w.now, 120+day))
	}
	w.retract(ids[2])
	if list := warnings(w); len(list) != 2 || list[0]["status"] != "active" || list[0]["observation_id"] != ids[3] || list[1]["resolution_reason"] != "withdrawn" {
		t.Errorf("without the third: %v", list)
	}
	w.retract(ids[0])
	if list := warnings(w); list[0]["status"] != "resolved" || list[0]["resolution_reason"] != "withdrawn" {
		t.Errorf("without the first: %v", list)
	}
}

// Retracting a reading reverses its effects: alerts, escalation, score and resolved alerts.
func TestStoryRetraction(t *testing.T) {
	w := newWard(t, nil)
	w.addReading("device", 122, 78, w.now.Add(-time.Hour))
	before, _ := w.score()
	id := w.addReading("device", 232, 130, w.now)
	e := w.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", w.patient), nil).results()[0]
	if w.request(authz.Nurse, "PATCH", "/escalations/"+fmt.Sprint(e["id"])+"/", object{"status": "in_progress"}).want(200); e["status"] != "open" {
		t.Errorf("it began as %v", e)
	}
	w.retract(id)
	w.wantAlertStates("retracted", "232 critical resolved withdrawn")
	if stats := w.statEscalations(); !slices.Equal(stats, []string{"stat cancelled"}) {
		t.Errorf("escalations: %q", stats)
	}
	if score, _ := w.score(); score != before {
		t.Errorf("the score is %v, was %v", score, before)
	}
	w.now = w.now.Add(time.Minute)
	w.addReading("device", 236, 130, w.now)
	if stats := w.statEscalations(); !slices.Equal(stats, []string{"stat cancelled", "stat open"}) {
		t.Errorf("a real one afterwards: %q", stats)
	}

	// An escalation that another critical reading joined stays open for it.
	w = newWard(t, nil)
	first := w.addReading("device", 232, 130, w.now.Add(-time.Minute))
	second := w.addReading("device", 208, 118, w.now)
	w.retract(first)
	e = w.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", w.patient), nil).results()[0]
	if e["status"] != "open" || e["priority"] != "stat" || !strings.Contains(e["reason"].(string), "208") {
		t.Errorf("remaining escalation: %v", e)
	}
	w.retract(second)
	if stats := w.statEscalations(); !slices.Equal(stats, []string{"stat cancelled"}) {
		t.Errorf("nothing is left: %q", stats)
	}

	// Alerts that the reading had resolved are reopened unless other readings suffice; alerts that it kept open are
	// resolved.
	w = newWard(t, nil)
	start := w.now
	at := func(minutes int, systolic int) string {
		w.now = start.Add(time.Duration(minutes) * time.Minute)
		return w.addReading("device", systolic, 80, w.now)
	}
	at(0, 204)
	one, two := at(1, 120), at(2, 121)
	w.wantAlertStates("auto-resolved", "204 critical auto_resolved")
	notified := len(w.announcements())
	w.retract(one)
	w.wantAlertStates("one of two retracted", "204 critical active")
	if again := w.announcements()[notified:]; !slices.Equal(again, []string{"alert_raised critical"}) {
		t.Errorf("notified again: %q", again)
	}
	wrong := at(3, 150)
	at(4, 122)
	w.wantAlertStates("a breach between", "204 critical active", "150 warning auto_resolved")
	w.retract(wrong)
	w.wantAlertStates("the breach retracted", "204 critical auto_resolved", "150 warning auto_resolved withdrawn")
	w.retract(two)
	w.wantAlertStates("one of two again", "204 critical active", "150 warning auto_resolved withdrawn")
	trail := w.request(authz.Nurse, "GET", "/alerts/1/", nil).want(200).object()["audit_trail"].([]any)
	var steps []string
	for _, step := range trail {
		steps = append(steps, step.(object)["action"].(string))
	}
	if diff := cmp.Diff([]string{"created", "auto_resolved", "reopened", "auto_resolved", "reopened"}, steps); diff != "" {
		t.Error(diff)
	}

	// A gain over another person's weight disappears when that weight is retracted, unless there is a gain over another
	// one.
	w = newWard(t, nil)
	start = w.now
	var weights []string
	for day, kg := range []float64{88, 84.5, 88.1, 90.4} {
		w.now = start.AddDate(0, 0, day)
		body := object{"patient_id": w.patient, "weight_kg": kg, "measured_at": w.now.Format(time.RFC3339)}
		weights = append(weights, w.request(authz.Nurse, "POST", "/ingestion/weight/", body).want(201).at("id").(string))
	}
	w.wantAlertStates("weights", "-3.5 warning active", "3.6 warning active", "5.9 critical active")
	w.retract(weights[1])
	spouse := []string{"-3.5 warning resolved withdrawn", "3.6 warning resolved withdrawn", "5.9 critical resolved withdrawn"}
	w.wantAlertStates("without the spouse's", append(spouse, "2.3 warning active")...) // since yesterday; 2.4 within the week
	if stats := w.statEscalations(); !slices.Equal(stats, []string{"stat cancelled"}) {
		t.Errorf("escalations: %q", stats)
	}
	w.retract(weights[0])
	w.wantAlertStates("without the first", append(spouse, "2.3 warning active")...)

	// The reading that superseded a late one is retracted: the late one counts as not superseded.
	w = newWard(t, nil)
	newer := w.addReading("device", 120, 80, w.now.AddDate(0, 0, -1))
	w.addReading("device", 188, 110, w.now.AddDate(0, 0, -10))
	w.wantAlertStates("superseded", "188 critical auto_resolved late superseded")
	w.retract(newer)
	w.wantAlertStates("the superseding reading retracted", "188 critical active late")
}
