package routes_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/routes"
)

// titles dispatches the due notifications and returns the titles of all pushes, in order of the text.
func (s *nightShift) titles() (titles []string) {
	s.t.Helper()
	if _, err := s.dispatcher.SendDue(s.t.Context(), s.app); err != nil {
		s.t.Fatal(err)
	}
	err := s.app.DB().NewQuery(`SELECT DISTINCT title FROM push_deliveries ORDER BY title`).Column(&titles)
	if err != nil {
		s.t.Fatal(err)
	}
	return titles
}

// send sends a measurement of the contract's gateway.
func (s *nightShift) send(device, kind, unit string, at time.Time, values string) {
	s.t.Helper()
	s.postEvent(s.t, measured(device, "GW-1", kind, unit, at, values)).want(200)
}

// A push names level and kind, and neither a name nor a value.
func TestStoryPushTitles(t *testing.T) {
	for name, test := range map[string]struct {
		kind, unit, values string
		want               []string
	}{
		"low oxygen":     {"pulse_oximetry", "%", `"spo2":82,"pulse":80`, []string{"Critical: low oxygen saturation", "Stat escalation: low oxygen saturation"}},
		"pressure":       {"blood_pressure", "mmHg", `"systolic":152,"diastolic":84`, []string{"Warning: abnormal blood pressure"}},
		"severe":         {"blood_pressure", "mmHg", `"systolic":206,"diastolic":126`, []string{"Critical: abnormal blood pressure", "Stat escalation: abnormal blood pressure"}},
		"slow pulse":     {"blood_pressure", "mmHg", `"systolic":120,"diastolic":80,"pulse":36`, []string{"Critical: abnormal heart rate", "Stat escalation: abnormal heart rate"}},
		"glucose":        {"blood_glucose", "mg/dL", `"glucose":48`, []string{"Critical: abnormal glucose level", "Stat escalation: abnormal glucose level"}},
		"fever":          {"body_temperature", "degC", `"temperature":38.4`, []string{"Warning: abnormal temperature"}},
		"low and warned": {"pulse_oximetry", "%", `"spo2":92`, []string{"Warning: low oxygen saturation"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.send("D-1", test.kind, test.unit, w.now, test.values)
			titles := w.titles()
			if !slices.Equal(titles, test.want) {
				t.Errorf("titles %q, want %q", titles, test.want)
			}
			for _, title := range titles {
				if phi.Sanitize(title, "removed") != title || strings.ContainsAny(title, "0123456789") {
					t.Errorf("%q is not free of PHI", title)
				}
			}
		})
	}
}

// The text in the app has value, bound, the mean of seven days and the time of measurement.
func TestStoryInAppText(t *testing.T) {
	w := newNightShift(t, 0)
	w.send("OX-1", "pulse_oximetry", "%", w.now.AddDate(0, 0, -8), `"spo2":99`)
	for i, spo2 := range []int{96, 95, 94} {
		w.send("OX-1", "pulse_oximetry", "%", w.now.AddDate(0, 0, -4+i), fmt.Sprintf(`"spo2":%d`, spo2))
	}
	w.send("OX-1", "pulse_oximetry", "%", w.now, `"spo2":83`)
	w.titles()
	list := w.request(authz.Nurse, "GET", "/notifications/", nil).results()
	if len(list) != 1 {
		t.Fatalf("%d entries", len(list))
	}
	body := list[0]["body"].(string)
	at := w.now.In(newYork).Format("Jan 2, 2006, 3:04 PM MST")
	for _, part := range []string{"SpO2 83 %", "limit 88", "Mean of the last 7 days: 92 % (4 readings).", "Measured " + at} {
		if !strings.Contains(body, part) {
			t.Errorf("%q lacks %q", body, part)
		}
	}
	wantIn(t, w.newest(), object{"level": "critical", "patient_phone": "555-731-9042"})
}

// The text about an early warning has the time of the newest value and what is usual for each value that scores.
func TestStoryEarlyWarningText(t *testing.T) {
	w := &nightShift{clinic: newScoringClinic(t)}
	w.dispatcher = notifications.NewDispatcher(notifications.DispatcherOptions{
		Push: notifications.NewPush(notifications.PushOptions{}), Zone: newYork, Clock: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler),
	})
	w.now = w.now.AddDate(0, 0, 1)
	patient := w.enroll(object{"phone": "555-731-9042"})
	w.request(authz.Admin, "PUT", "/patients/"+patient+"/care-team/", object{"members": []object{{"user_id": w.people[authz.Nurse].Number()}}}).want(200)
	for day := 3; day > 0; day-- {
		w.measureSign(patient, vitalSign{"blood_pressure", fmt.Sprintf(`"systolic":%d,"diastolic":80,"pulse":75`, 130+day), time.Duration(day) * 24 * time.Hour})
	}
	w.measureAll(patient, septic...)
	w.titles()
	var texts int
	for _, entry := range w.request(authz.Nurse, "GET", "/notifications/?page_size=100", nil).results() {
		body := entry["body"].(string)
		if !strings.Contains(body, "Early warning score") {
			continue
		}
		texts++
		at := w.now.Add(-time.Minute).In(newYork).Format("Jan 2, 2006, 3:04 PM MST")
		for _, part := range []string{
			"SpO2 89 %", "critical limit 7", "Means of the last 7 days: Systolic 122 mmHg (4 readings), Pulse 88 bpm (4 readings), SpO2 has no other reading, Temperature has no other reading.",
			"Measured " + at,
		} {
			if !strings.Contains(body, part) {
				t.Errorf("%q lacks %q", body, part)
			}
		}
		if entry["patient_phone"] != "555-731-9042" {
			t.Errorf("phone %v", entry["patient_phone"])
		}
	}
	if texts == 0 {
		t.Error("no text about the early warning")
	}
}

// A notification about an open critical alert has the phone number for roles that may see it; no push, no mail and no text has it.
func TestStoryNotificationPhone(t *testing.T) {
	w := newNightShift(t, 0)
	w.send("OX-1", "pulse_oximetry", "%", w.now, `"spo2":83`)
	w.titles()
	shown := func() (phones []string) {
		for _, entry := range w.request(authz.Nurse, "GET", "/notifications/", nil).results() {
			phones = append(phones, fmt.Sprint(entry["patient_phone"]))
			w.request(authz.Nurse, "GET", fmt.Sprintf("/notifications/%v/", entry["id"]), nil).want(200).wantAt(object{"patient_phone": entry["patient_phone"]})
			if strings.Contains(fmt.Sprint(entry["title"], entry["body"]), "9042") {
				t.Errorf("the text has the number: %v", entry["body"])
			}
		}
		return phones
	}
	if got := shown(); !slices.Equal(got, []string{"555-731-9042"}) {
		t.Errorf("a critical alert shows %q", got)
	}
	pushed := w.queryRows(t, `SELECT title || body FROM push_deliveries`)
	if len(pushed) == 0 || strings.Contains(strings.Join(pushed, " "), "9042") {
		t.Errorf("pushed %q", pushed)
	}
	w.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/resolve/", w.newest()["id"]), object{}).want(200)
	if got := shown(); !slices.Equal(got, []string{"<nil>"}) {
		t.Errorf("a resolved alert shows %q", got)
	}
	w.send("BP-1", "blood_pressure", "mmHg", w.now, `"systolic":152,"diastolic":84`)
	w.titles()
	if got := shown(); !slices.Equal(got, []string{"<nil>", "<nil>"}) {
		t.Errorf("a warning shows %q", got)
	}
}

// Where clinicians are confined to their care teams, a notification of a patient who left the caller's care keeps its text and loses the number.
func TestStoryNotificationPhoneOutsideTheCareTeam(t *testing.T) {
	for restricted, want := range map[bool]any{true: nil, false: "555-731-9042"} {
		w := &nightShift{clinic: newClinicWithRules(t, clinicRules, func(e *routes.Engines) { e.RestrictToCareTeam = restricted })}
		w.t = t
		w.dispatcher = notifications.NewDispatcher(notifications.DispatcherOptions{
			Push: notifications.NewPush(notifications.PushOptions{}), Zone: newYork, Clock: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler),
		})
		patient := w.enroll(object{"phone": "555-731-9042", "gateway_patient_id": "GW-1"})
		careFor := func(role authz.Role) {
			w.request(authz.Admin, "PUT", "/patients/"+patient+"/care-team/", object{"members": []object{{"user_id": w.people[role].Number()}}}).want(200)
		}
		careFor(authz.Nurse)
		w.send("OX-1", "pulse_oximetry", "%", w.now, `"spo2":83`)
		w.titles()
		careFor(authz.Provider)
		entry := w.request(authz.Nurse, "GET", "/notifications/", nil).results()[0]
		wantIn(t, entry, object{"patient_phone": want})
		w.request(authz.Nurse, "GET", fmt.Sprintf("/notifications/%v/", entry["id"]), nil).want(200).wantAt(object{"patient_phone": want})
	}
}

// The text about a clock, and about values of a clock that is ahead, states the receipt, which is all that is known.
func TestStoryClockTextStatesTheReceipt(t *testing.T) {
	for name, offset := range map[string]time.Duration{"behind": -48 * time.Hour, "ahead": 7 * time.Hour} {
		w := newNightShift(t, 0)
		w.send("OX-1", "pulse_oximetry", "%", w.now, `"spo2":97`)
		w.now = w.now.Add(time.Hour)
		w.postEvent(t, measured("OX-1", "GW-1", "pulse_oximetry", "%", w.now.Add(offset), `"spo2":81`))
		w.titles()
		for _, entry := range w.request(authz.Nurse, "GET", "/notifications/?page_size=100", nil).results() {
			if body := entry["body"].(string); strings.Contains(body, ". Measured "+w.now.In(newYork).Format("Jan 2, 2006")) {
				t.Errorf("%s: %q", name, body)
			}
		}
	}
}

// What a meter shows beyond its range reads as that, in the message, the flag and the observation.
func TestStoryBeyondRange(t *testing.T) {
	for word, want := range map[string]string{"HI": "above 600", "LO": "below 20"} {
		t.Run(word, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.send("GL-1", "blood_glucose", "mg/dL", w.now, fmt.Sprintf(`"glucose":%q`, word))
			alert := w.newest()
			if message := fmt.Sprint(alert["message"]); !strings.HasPrefix(message, "Glucose "+want+" mg/dL is ") {
				t.Errorf("message %q", message)
			}
			flag := fmt.Sprint(w.fhir(authz.Provider, fmt.Sprintf("/Flag/%v", alert["id"]))["code"])
			if !strings.Contains(flag, want+" mg/dL") {
				t.Errorf("the flag reads %s", flag)
			}
			observation := w.fhir(authz.Provider, fmt.Sprintf("/Observation/%v", alert["observation_id"]))
			if note := fmt.Sprint(observation["note"]); !strings.Contains(note, want+" mg/dL") {
				t.Errorf("the observation is noted %s", note)
			}
			latest := w.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["latest_vitals"].(object)["blood_glucose"].(object)
			if latest["comparator"] != map[string]string{"HI": ">", "LO": "<"}[word] {
				t.Errorf("latest is %v", latest)
			}
		})
	}
}

const weak = `"spo2":82,"pulse":190,"perfusion_index":0.1`

// The stat escalation of a value measured with a weak signal waits for one repeat, at most ten minutes, also through a restart.
func TestStoryWeakSignal(t *testing.T) {
	spo2 := func(values string) func(w *nightShift) {
		return func(w *nightShift) { w.send("OX-1", "pulse_oximetry", "%", w.now, values) }
	}
	for name, test := range map[string]struct {
		first       string
		then        func(w *nightShift)
		atOnce, end int
	}{
		"no repeat":                    {weak, func(*nightShift) {}, 0, 1},
		"normal with a good signal":    {weak, spo2(`"spo2":96,"pulse":80,"perfusion_index":2.4`), 0, 0},
		"normal without an index":      {weak, spo2(`"spo2":96,"pulse":80`), 0, 0},
		"a warning with a good signal": {weak, spo2(`"spo2":91,"pulse":80,"perfusion_index":0.3`), 0, 0},
		"normal with a weak signal":    {weak, spo2(`"spo2":96,"pulse":80,"perfusion_index":0.2`), 0, 1},
		"two normal ones with a weak signal": {weak, func(w *nightShift) {
			spo2(`"spo2":96,"pulse":80,"perfusion_index":0.2`)(w)
			w.now = w.now.Add(time.Minute)
			spo2(`"spo2":97,"pulse":80,"perfusion_index":0.1`)(w)
		}, 0, 1},
		"critical with a good signal": {weak, spo2(`"spo2":84,"pulse":80,"perfusion_index":2.4`), 1, 1},
		"critical with a weak signal": {weak, spo2(weak), 1, 1},
		"another kind":                {weak, func(w *nightShift) { w.cuff(120, 80, 0) }, 0, 1},
		"another critical value":      {weak, func(w *nightShift) { w.cuff(206, 126, 0) }, 1, 1},
		"only the pulse is critical":  {`"spo2":96,"pulse":190,"perfusion_index":0.29`, spo2(`"spo2":96,"pulse":80`), 0, 0},
		"typed by the patient": {weak, func(w *nightShift) {
			w.requestAs(w.portal(), "POST", "/ingestion/pulse-oximetry/", object{"spo2": 97, "measured_at": w.now.Format(time.RFC3339)}).want(201)
		}, 0, 1},
		"good signal":      {`"spo2":82,"pulse":190,"perfusion_index":0.3`, func(*nightShift) {}, 1, 1},
		"without an index": {`"spo2":82,"pulse":80`, func(*nightShift) {}, 1, 1},
		"entered in error": {weak, func(w *nightShift) {
			w.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", w.newest()["observation_id"]), object{"reason": "The spouse's."}).want(200)
		}, 0, 0},
		"another false one an hour later": {weak, func(w *nightShift) {
			spo2(`"spo2":96,"perfusion_index":2`)(w)
			w.advance(time.Hour)
			spo2(`"spo2":74,"perfusion_index":0.1`)(w)
			w.wantStat("the second false one", 0)
			w.advance(time.Minute)
			spo2(`"spo2":97,"perfusion_index":2`)(w)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.send("OX-1", "pulse_oximetry", "%", w.now, test.first)
			if strings.Contains(test.first, "0.1") || strings.Contains(test.first, "0.29") {
				w.wantStat("the first", 0)
				for _, alert := range w.alertsOf("level", "critical") {
					if !strings.Contains(fmt.Sprint(alert["message"]), "weak signal, repeat") || alert["held_until"] != w.now.Add(10*time.Minute).Format("2006-01-02T15:04:05Z") {
						t.Errorf("held until %v: %v", alert["held_until"], alert["message"])
					}
				}
			}
			w.now = w.now.Add(2 * time.Minute)
			test.then(w)
			w.wantStat("the next", test.atOnce)
			w.advance(9 * time.Minute)
			w.now = w.now.Add(time.Hour)
			w.minute()
			w.wantStat("at the end", test.end)
			for _, alert := range w.alertsOf("level", "critical") {
				if alert["held_until"] != nil || (test.end == 1) != (alert["escalation_id"] != nil) {
					t.Errorf("%v: held until %v, escalation %v", alert["type"], alert["held_until"], alert["escalation_id"])
				}
			}
		})
	}
}

// What a patient types by mistake pages no one; a correction within ten minutes closes it. What staff type is told as before.
func TestStoryTypingError(t *testing.T) {
	type by func(w *nightShift, systolic, diastolic int) reply
	typed := func(role authz.Role) by {
		return func(w *nightShift, systolic, diastolic int) reply {
			if role == authz.Patient && w.people[role].PatientID() == "" {
				w.people[role] = w.portal()
			}
			return w.requestAs(w.people[role], "POST", "/ingestion/blood-pressure/", object{
				"patient_id": w.patient, "systolic": systolic, "diastolic": diastolic, "measured_at": w.now.Format(time.RFC3339),
			})
		}
	}
	patient, staff := typed(authz.Patient), typed(authz.MA)
	for name, test := range map[string]struct {
		first     by
		then      by
		after     time.Duration
		status    string // of the typed values in the end
		level     string // of the alert in the end
		pushes    int
		escalates bool
	}{
		"corrected by the patient": {patient, patient, 9 * time.Minute, "discarded", "", 0, false},
		"corrected by staff":       {patient, staff, time.Minute, "discarded", "", 0, false},
		"not corrected":            {patient, nil, 0, "rejected", "warning", 0, false},
		"corrected too late":       {patient, patient, 11 * time.Minute, "rejected", "warning", 0, false},
		"typed by staff":           {staff, nil, 0, "rejected", "critical", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			test.first(w, 300, 20).wantFields("diastolic")
			test.first(w, 301, 20).wantFields("diastolic", "systolic")
			if !test.escalates {
				w.wantStat("at once", 0)
				w.wantPushed("at once", 0, 0)
				if list := w.alertsOf(); len(list) != 0 {
					t.Fatalf("alerts at once: %v", list)
				}
			}
			if test.then != nil {
				w.advance(test.after)
				test.then(w, 130, 80).want(201)
			}
			w.advance(20 * time.Minute)
			held := w.queryRows(t, `SELECT DISTINCT status FROM gateway_events`)
			if !slices.Equal(held, []string{test.status}) {
				t.Errorf("the typed values are %q", held)
			}
			levels := map[string]bool{}
			for _, alert := range w.alertsOf() {
				levels[fmt.Sprint(alert["level"])] = true
			}
			if (test.level == "") != (len(levels) == 0) || test.level != "" && !levels[test.level] {
				t.Errorf("alerts %v", levels)
			}
			if got := len(w.statEscalations(t)) > 0; got != test.escalates {
				t.Errorf("escalations: %q", w.statEscalations(t))
			}
			w.pushed(w.people[authz.Nurse], "alerts")
			var pushes int
			if err := w.app.DB().NewQuery(`SELECT COUNT(*) FROM push_deliveries WHERE title LIKE 'Critical%'`).Bind(dbx.Params{}).Row(&pushes); err != nil || (pushes > 0) != (test.pushes > 0) {
				t.Errorf("%d pushes", pushes)
			}
			if test.status == "rejected" && test.level == "warning" { // a clinician can decide about it
				id := w.queryRows(t, `SELECT id FROM gateway_events ORDER BY id`)[0]
				w.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A typing error."}).want(200)
			}
		})
	}
}

// The patient is asked; a device's implausible value is told at once.
func TestTypedValueIsAsked(t *testing.T) {
	w := newNightShift(t, 0)
	answer := w.requestAs(w.portal(), "POST", "/ingestion/blood-pressure/", object{"systolic": 300, "diastolic": 20, "measured_at": w.now.Format(time.RFC3339)})
	answer.want(400, "validation_error")
	if detail := fmt.Sprint(answer.at("detail")); !strings.HasPrefix(detail, "Is that right?") {
		t.Errorf("the patient reads %q", detail)
	}
	for typed, asks := range map[[2]any]bool{{80, 120}: true, {120, 120}: true, {"x", 80}: false, {120, nil}: false} {
		answer = w.requestAs(w.portal(), "POST", "/ingestion/blood-pressure/", object{"systolic": typed[0], "diastolic": typed[1], "measured_at": w.now.Format(time.RFC3339)})
		answer.want(400, "validation_error")
		if detail := fmt.Sprint(answer.at("detail")); strings.HasPrefix(detail, "Is that right?") != asks {
			t.Errorf("%v: the patient reads %q", typed, detail)
		}
	}
	w.postEvent(t, measured("BP-1", "GW-1", "blood_pressure", "mmHg", w.now, `"systolic":300,"diastolic":20`)).want(400)
	wantIn(t, w.implausible(w.patient), object{"level": "critical"})
	w.wantStat("of the device", 1)
}
