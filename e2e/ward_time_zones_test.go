package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// portal signs in to a patient's portal account.
func (w ward) portal(t testing.TB, name, patient string) string {
	t.Helper()
	email := name + "@patients.vigil.test"
	w.record(t, "users", object{"email": email, "password": password, "passwordConfirm": password, "role": "patient", "is_active": true, "patient": patient})
	return w.signIn(t, email)
}

// alerts returns a patient's alerts, newest first, without informational ones.
func (w ward) alerts(t testing.TB, patient, filter string) (list []object) {
	t.Helper()
	a := w.get(t, "/api/v1/alerts/?page_size=100&patient_id="+patient+filter, w.Admin(t)).expect(t, 200)
	results, _ := at(t, a, "results").([]any)
	for _, one := range results {
		if alert := one.(map[string]any); alert["level"] != "normal" {
			list = append(list, alert)
		}
	}
	return list
}

// noonAfterClockChange returns the last noon after a clock change in the ward's zone that is at least three full days ago. The night
// before has 23 or 25 hours.
func (w ward) noonAfterClockChange() time.Time {
	today := now().In(w.zone)
	for day := range 400 {
		noon := time.Date(today.Year(), today.Month(), today.Day()-4-day, 12, 0, 0, 0, w.zone)
		_, after := noon.Zone()
		if _, before := noon.AddDate(0, 0, -1).Zone(); before != after {
			return noon
		}
	}
	return today
}

// A night of 23 or 25 hours counts as one night, and its week as seven days.
func wardChangedClocks(t *testing.T, w ward) {
	noon := w.noonAfterClockChange()
	morning := func(days, minutes int) time.Time {
		return time.Date(noon.Year(), noon.Month(), noon.Day()+days, 7, minutes, 0, 0, w.zone)
	}
	for name, story := range map[string]struct {
		before, after time.Time
		gain          float64
		parameter     any // of the alert; nil for none
	}{
		"ChangedNight":  {morning(-1, 0), morning(0, 0), 1.45, "weight_daily_change"},
		"ChangedWeek":   {morning(-7, 0), morning(0, 5), 2.72, "weight_change"},
		"ChangedFour":   {morning(-4, 0), morning(3, 5), 2.72, "weight_change"},
		"ChangedTwo":    {morning(-2, 0), morning(0, 0), 1.45, nil},
		"ChangedEight":  {morning(-8, 0).Add(-7*time.Hour + -time.Minute), morning(0, 5), 2.72, nil},
		"ChangedMinute": {time.Date(noon.Year(), noon.Month(), noon.Day()-1, 23, 59, 0, 0, w.zone), time.Date(noon.Year(), noon.Month(), noon.Day(), 23, 58, 0, 0, w.zone), 1.45, "weight_daily_change"},
	} {
		patient := w.enrol(t, name, nil)
		w.signed(t, weighing(name, 80, story.before)).expect(t, 200)
		w.signed(t, weighing(name, 80+story.gain, story.after)).expect(t, 200)
		list := w.alerts(t, patient, "&type=weight")
		if story.parameter == nil && len(list) != 0 || story.parameter != nil && (len(list) != 1 || list[0]["parameter"] != story.parameter || list[0]["level"] != "warning") {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// The clinician on call is notified by the rota's wall clock, and the outcome of a stat escalation is in its history.
func wardOnCall(t *testing.T, w ward) {
	me := w.get(t, "/api/v1/users/me/", w.Admin(t)).expect(t, 200)
	id := at(t, me, "id")
	var shifts []object
	for day := range 7 {
		shifts = append(shifts, object{"weekday": day, "start": "00:00", "end": "00:00", "user_id": id})
	}
	rota := encode(t, object{"time_zone": w.zone.String(), "shifts": shifts, "overrides": []object{}})
	w.send(t, "PUT", "/api/v1/on-call/", w.Admin(t), rota).expect(t, 200)
	local := now().In(w.zone)
	a := w.get(t, "/api/v1/on-call/now/", w.Admin(t)).expect(t, 200)
	until, err := time.Parse(time.RFC3339, text(t, a, "until"))
	midnight := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, w.zone)
	if err != nil || !until.Equal(midnight) || at(t, a, "user_id") != id {
		t.Errorf("on call until %s, want %s\n%s", until, midnight, a.body)
	}
	patient := w.enrol(t, "Stat", nil)
	w.signed(t, oxygen("Stat", 71, now())).expect(t, 200)
	a = w.get(t, "/api/v1/escalations/?patient_id="+patient, w.Admin(t)).expect(t, 200)
	wantAt(t, a, object{"count": 1.0, "results.0.priority": "stat", "results.0.tier": 0.0, "results.0.history.0.event": "opened", "results.0.reminded_at": nil})
	path := fmt.Sprintf("/api/v1/escalations/%.0f/", at(t, a, "results.0.id"))
	w.send(t, "PATCH", path, w.Admin(t), `{"status":"in_progress","notes":"calling"}`).expect(t, 200)
	a = w.send(t, "PATCH", path, w.Admin(t), `{"status":"resolved","resolution_notes":"on oxygen"}`).expect(t, 200)
	for _, event := range []string{"opened", "assigned", "in_progress", "note", "resolved"} {
		if !strings.Contains(string(a.body), `"`+event+`"`) {
			t.Errorf("its history has no %s\n%s", event, a.body)
		}
	}
}

// A child of seven, a pregnancy and COPD have templates of their own.
func wardTemplates(t *testing.T, w ward) {
	child := w.enrol(t, "Child", object{"date_of_birth": now().In(w.zone).AddDate(-7, 0, -1).Format(time.DateOnly)})
	w.signed(t, cuff("Child", 122, 80, now())).expect(t, 200)
	w.wantAlerts(t, "a child of 7 with 122/80", child)
	wantAt(t, w.get(t, "/api/v1/patients/"+child+"/", w.Admin(t)).expect(t, 200), object{"needs_thresholds": true})
	for name, story := range map[string]struct {
		code, wants string
		event       object
		alerts      []string
	}{
		"Pregnant": {"O13.3", "regnancy", cuff("Pregnant", 162, 112, now()), []string{"critical blood_pressure active"}},
		"Copd":     {"J44", "COPD", oxygen("Copd", 89, now()), nil},
	} {
		patient := w.enrol(t, name, object{"icd10_codes": []string{story.code}})
		proposed := at(t, w.get(t, "/api/v1/patients/"+patient+"/", w.Admin(t)).expect(t, 200), "proposed_template")
		if proposed == nil {
			t.Errorf("%s: no template is proposed", name)
			continue
		}
		template := w.get(t, fmt.Sprintf("/api/v1/threshold-templates/%v/", proposed), w.Admin(t)).expect(t, 200)
		if !strings.Contains(text(t, template, "name"), story.wants) {
			t.Errorf("%s: proposed is %s", name, text(t, template, "name"))
		}
		w.post(t, "/api/v1/patients/"+patient+"/vital-config/apply-template/", w.Admin(t), object{"template_id": proposed}).expect(t, 200)
		w.signed(t, story.event).expect(t, 200)
		w.wantAlerts(t, name, patient, story.alerts...)
	}
}

// A value at a bound alerts; the next value inside does not. The early warning score has bounds of its own.
func wardExactBounds(t *testing.T, w ward) {
	glucose := func(mgdl float64) func(string) object {
		return func(n string) object {
			return event(n, "GL-"+n, "blood_glucose", "mg/dL", object{"glucose": mgdl}, now())
		}
	}
	pressure := func(systolic, diastolic float64) func(string) object {
		return func(n string) object { return cuff(n, systolic, diastolic, now()) }
	}
	for name, story := range map[string]struct {
		event func(string) object
		level any
	}{
		"Exact54": {glucose(54), "critical"}, "Exact55": {glucose(55), "warning"}, "Exact70": {glucose(70), "warning"}, "Exact71": {glucose(71), nil},
		"Exact90": {pressure(90, 70), "warning"}, "Exact91": {pressure(91, 61), nil}, "Exact50": {pressure(100, 50), "warning"}, "Exact51": {pressure(100, 51), nil},
		"Exact180": {pressure(180, 80), "critical"}, "Exact179": {pressure(179, 80), "warning"},
	} {
		patient := w.enrol(t, name, nil)
		w.signed(t, story.event(name)).expect(t, 200)
		list := slices.DeleteFunc(w.alerts(t, patient, ""), func(alert object) bool { return alert["type"] == "early_warning" })
		if story.level == nil && len(list) != 0 || story.level != nil && (len(list) != 1 || list[0]["level"] != story.level) {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// A low battery is resolved by a phone call.
func wardWhomToCall(t *testing.T, w ward) {
	patient := w.enrol(t, "Call", object{"phone": "+12125550123"})
	w.post(t, "/api/v1/devices/assign/", w.Admin(t), object{"device_id": "BP-Call", "patient_id": patient, "device_type": "blood_pressure"}).expect(t, 200)
	w.signed(t, object{"event_type": "device.battery_low", "device_id": "BP-Call", "timestamp": now().Format(time.RFC3339), "battery_level": 14}).expect(t, 200)
	list := w.alerts(t, patient, "&type=device_battery")
	if len(list) != 1 || list[0]["patient_phone"] != "+12125550123" {
		t.Errorf("the alert is %v", list)
	}
}

// The third heartbeat flag within a week is a warning, and six flags give one alert.
func wardHeartbeats(t *testing.T, w ward) {
	patient := w.enrol(t, "Flutter", nil)
	for i := range 6 {
		values := object{"systolic": 124, "diastolic": 78, "pulse": 74, "irregular_heartbeat": true}
		w.signed(t, event("Flutter", "BP-Flutter", "blood_pressure", "mmHg", values, now().Add(-time.Duration(6-i)*time.Hour))).expect(t, 200)
		if got := len(w.alerts(t, patient, "&type=irregular_heartbeat")); got != min(1, i/2) {
			t.Errorf("after %d flags: %d warnings", i+1, got)
		}
	}
}

// A reading worse than the snoozed one breaks through.
func wardSnooze(t *testing.T, w ward) {
	patient := w.enrol(t, "Snoozed", nil)
	ago := func(minutes int) time.Time { return now().Add(-time.Duration(minutes) * time.Minute) }
	w.signed(t, cuff("Snoozed", 188, 104, ago(30))).expect(t, 200)
	w.snooze(t, patient, "blood_pressure", true).expect(t, 201)
	for i, story := range []struct {
		systolic, diastolic float64
		snoozed             bool
	}{{190, 106, true}, {199, 106, true}, {232, 130, false}} {
		w.signed(t, cuff("Snoozed", story.systolic, story.diastolic, ago(20-i))).expect(t, 200)
		if alert := w.alerts(t, patient, "")[0]; alert["snoozed"] != story.snoozed {
			t.Errorf("%v is snoozed %v", story.systolic, alert["snoozed"])
		}
	}
	w.snooze(t, patient, "blood_pressure", true, 5).expect(t, 400)
}

// snooze snoozes alerts of a type for two hours, or the given number.
func (w ward) snooze(t testing.TB, patient, kind string, critical bool, hours ...int) answer {
	t.Helper()
	length := 2
	if len(hours) > 0 {
		length = hours[0]
	}
	return w.post(t, "/api/v1/patients/"+patient+"/snoozes/", w.Admin(t), object{
		"type": kind, "reason": "known", "include_critical": critical, "ends_at": now().Add(time.Duration(length) * time.Hour).Format(time.RFC3339),
	})
}
