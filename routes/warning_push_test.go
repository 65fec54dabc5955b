package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
)

const oneDay = 24 * time.Hour

// A warning is pushed once when the mean crosses the bound, and again only when it is worse or the mean was back inside. All are in the list and
// the app, and the alert states why it was not pushed.
func TestStoryWarningsByTrend(t *testing.T) {
	type step struct {
		systolic, diastolic int
		pushed              bool
		rule                any // nil without an alert
	}
	for name, steps := range map[string][]step{
		"single readings out of range": {
			{152, 80, false, "trend"}, {128, 80, false, nil}, {130, 80, false, nil}, {127, 80, false, nil}, {151, 80, false, "trend"}, {126, 80, false, nil},
		},
		"the mean crosses, once": {
			{148, 80, false, "trend"}, {150, 80, false, "trend"}, {149, 80, true, "mean"}, {152, 80, false, "trend"}, {150, 80, false, "trend"}, {158, 80, false, "trend"},
		},
		"worse by a quarter": {
			{148, 80, false, "trend"}, {150, 80, false, "trend"}, {150, 80, true, "mean"}, {159, 80, false, "trend"}, {160, 80, true, "worse"}, {165, 80, false, "trend"}, {170, 80, true, "worse"},
		},
		"halfway to critical": {
			{120, 80, false, nil}, {121, 80, false, nil}, {122, 80, false, nil}, {160, 80, true, "midway"}, {120, 80, false, nil}, {161, 80, false, "trend"},
		},
		"the other parameter": {
			{150, 80, false, "trend"}, {150, 80, false, "trend"}, {150, 80, true, "mean"}, {150, 105, true, "midway"}, {150, 92, false, "trend"},
		},
		"a low pressure after a high one": {
			{165, 80, true, "midway"}, {120, 70, false, nil}, {84, 60, true, "midway"}, {88, 60, false, "trend"},
		},
		"a critical one in between": {
			{120, 80, false, nil},
			{120, 80, false, nil},
			{120, 80, false, nil},
			{186, 80, true, "critical"},
			{130, 80, false, nil},
			{120, 80, false, nil},
			{165, 80, false, "trend"},
			{190, 80, true, "critical"},
		},
		"diastolic 55 is no warning": {{120, 55, false, nil}, {120, 50, false, "trend"}, {91, 60, false, nil}, {90, 60, false, "trend"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0, alerts.PushTrend)
			listed := 0
			for i, s := range steps {
				w.now = w.now.Add(oneDay)
				before := len(w.alertsOf())
				alert := w.cuff(s.systolic, s.diastolic, 0)
				if got := w.pushed(w.people[authz.Nurse], notifications.Alerts) > 0; got != s.pushed {
					t.Errorf("step %d, %d/%d: pushed %t", i+1, s.systolic, s.diastolic, got)
				}
				if len(w.alertsOf()) == before {
					alert = object{"push_rule": nil}
				} else {
					listed++
				}
				if alert["push_rule"] != s.rule {
					t.Errorf("step %d, %d/%d: %v, %v", i+1, s.systolic, s.diastolic, alert["push_rule"], alert["push_reason"])
				}
				reason, _ := alert["push_reason"].(string)
				if s.rule != nil && (alert["pushed"] != s.pushed || !s.pushed && !strings.HasPrefix(reason, "Not pushed: ")) {
					t.Errorf("step %d: pushed is %v, %q", i+1, alert["pushed"], reason)
				}
			}
			if got := len(w.requestAs(w.people[authz.Nurse], "GET", "/notifications/?channel=alerts&page_size=100", nil).results()); got != listed {
				t.Errorf("%d in-app records for %d alerts", got, listed)
			}
		})
	}
}

// What no trend describes is pushed at once: changes of weight, irregular heartbeats, and questions about a reading.
func TestStoryWarningsWithoutTrend(t *testing.T) {
	weigh := func(w *nightShift, kg float64) {
		w.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": w.patient, "weight_kg": kg, "measured_at": w.now.UTC().Format(time.RFC3339Nano)}).want(201)
	}
	for name, send := range map[string]func(w *nightShift){
		"weight": func(w *nightShift) {
			weigh(w, 80)
			w.now = w.now.Add(oneDay)
			weigh(w, 81.5)
		},
		"suspect weight": func(w *nightShift) {
			for _, kg := range []float64{80, 80.2, 80.1, 61} {
				weigh(w, kg)
				w.now = w.now.Add(oneDay)
			}
		},
		"irregular heartbeat": func(w *nightShift) {
			for range 3 {
				w.postEvent(w.t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"BP-1","patient_id":"GW-1","measurement_type":"bp",
					"values":{"systolic":120,"diastolic":80,"pulse":70,"irregular_heartbeat":true},"timestamp":%q}`, w.now.UTC().Format(time.RFC3339Nano))).want(200)
				w.now = w.now.Add(time.Hour)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for choice, want := range map[alerts.WarningPush]int{alerts.PushTrend: 1, alerts.PushEach: 1, alerts.PushNever: 0} {
				w := newNightShift(t, 0, choice)
				send(w)
				if got := w.pushed(w.people[authz.Nurse], notifications.Alerts); got != want {
					t.Errorf("%s: %d pushes, want %d", choice, got, want)
				}
			}
		})
	}
}

func TestStoryNeverPushWarnings(t *testing.T) {
	w := newNightShift(t, 0, alerts.PushNever)
	for range 4 {
		if alert := w.cuff(170, 100, 0); alert["pushed"] != false || alert["push_rule"] != "never" {
			t.Errorf("%v", alert)
		}
		w.now = w.now.Add(oneDay)
	}
	w.wantPushed("warnings", 0, 0)
	w.cuff(190, 100, 0)
	w.wantPushed("a critical one", 1, 1)
}

// A push that quiet hours silenced does not count: the next warning is pushed.
func TestStoryMeanCrossesInQuietHours(t *testing.T) {
	w := newNightShift(t, 0, alerts.PushTrend)
	w.requestAs(w.people[authz.Nurse], "PATCH", "/users/me/notification-preferences/", object{
		"quiet_hours": object{"enabled": true, "start": "08:00", "end": "09:00"},
	}).want(200)
	for i, want := range []int{0, 0, 0, 1, 0} { // 08:45 in New York, and 09:45 from the fourth on
		if w.now = w.now.Add(oneDay); i == 3 {
			w.now = w.now.Add(time.Hour)
		}
		w.cuff(150, 80, 0)
		if got := w.pushed(w.people[authz.Nurse], notifications.Alerts); got != want {
			t.Errorf("day %d: %d pushes, want %d", i+1, got, want)
		}
	}
}

// Suspect and retracted readings do not count, a retracted push neither, and an event that is sent again pushes nothing.
func TestStoryRetractedPush(t *testing.T) {
	w := newNightShift(t, 0, alerts.PushTrend)
	var last object
	for range 3 {
		w.now = w.now.Add(oneDay)
		last = w.cuff(150, 80, 0)
	}
	w.wantPushed("the mean crosses", 1, 0)
	w.cuffAt(w.now, 150, 80, 0) // the same event
	w.wantPushed("sent again", 0, 0)
	w.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", last["observation_id"]), object{"reason": "another person"}).want(200)
	w.now = w.now.Add(oneDay)
	w.cuff(151, 80, 0)
	w.wantPushed("after the retraction", 1, 0)
}

// A warning that is still present when its snooze ends is pushed, as the clinician chose.
func TestStoryTrendAndSnooze(t *testing.T) {
	w := newNightShift(t, 0, alerts.PushTrend)
	w.request(authz.Nurse, "POST", "/patients/"+w.patient+"/snoozes/", object{
		"type": "blood_pressure", "reason": "new medication", "ends_at": w.now.Add(2 * time.Hour).UTC().Format(time.RFC3339),
	}).want(201)
	w.now = w.now.Add(time.Minute)
	if alert := w.cuff(150, 80, 0); alert["push_rule"] != "snoozed" || alert["pushed"] != false {
		t.Errorf("snoozed: %v, %v", alert["push_rule"], alert["pushed"])
	}
	w.wantPushed("snoozed", 0, 0)
	w.advance(3 * time.Hour)
	w.wantPushed("the snooze ended", 1, 0)
	if alert := w.newest(); alert["push_rule"] != "snooze_end" || alert["pushed"] != true {
		t.Errorf("ended: %v, %v", alert["push_rule"], alert["pushed"])
	}
}

// A weight over its target is pushed once until it is below again, and when it has risen by the bound above the last one pushed.
func TestStoryOverTargetIsPushedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		first  bool // the run begins with a gain in a day
		kg     []float64
		pushes []int
	}{
		"slowly":             {false, []float64{82, 82.2, 83, 83.4, 83.1, 82.1}, []int{0, 0, 1, 0, 0, 0}},
		"below and again":    {false, []float64{83, 82.9, 82.2, 82.1, 82.8, 83}, []int{1, 0, 0, 0, 1, 0}},
		"worse by the bound": {false, []float64{82.6, 83.4, 84, 84.9, 85, 85.2}, []int{1, 0, 0, 0, 0, 1}},
		"by a gain at first": {true, []float64{81, 83.2, 83, 82.8, 82.2}, []int{0, 1, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0, alerts.PushTrend)
			bounds := object{"target_kg": 80, "over_target_kg": 2.5, "daily_change_kg": nil, "change_threshold_kg": 40, "critical_change_kg": nil, "slow_gain_kg": nil}
			if test.first {
				bounds["daily_change_kg"] = 2
			}
			w.request(authz.Provider, "PUT", "/patients/"+w.patient+"/vital-config/", object{"reason": "dry weight", "weight": bounds}).want(200)
			for i, kg := range test.kg {
				w.now = w.now.Add(oneDay)
				w.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": w.patient, "weight_kg": kg, "measured_at": w.now.UTC().Format(time.RFC3339Nano)}).want(201)
				if got := w.pushed(w.people[authz.Nurse], notifications.Alerts); got != test.pushes[i] {
					t.Errorf("weighing %d of %v kg: %d pushes, want %d (%v)", i+1, kg, got, test.pushes[i], w.newest()["push_reason"])
				}
			}
		})
	}
}

// The average of repeated readings may be in range: the warning about it states that.
func TestStoryAverageInRangeIsNotPushed(t *testing.T) {
	w := newNightShift(t, 10*time.Minute, alerts.PushTrend)
	w.cuff(190, 100, 0)
	for range 2 {
		w.advance(2 * time.Minute)
		w.cuff(122, 78, 0)
	}
	w.advance(15 * time.Minute)
	found := false
	for _, a := range w.alertsOf() {
		if a["level"] == "warning" {
			found = true
			if a["push_reason"] != "Not pushed: the values are in range." {
				t.Errorf("reason %q", a["push_reason"])
			}
		}
	}
	if !found {
		t.Errorf("alerts %v", w.alertsOf())
	}
}

// Readings of a clock that went back are suspect, but their pushes count: one push for each rule, as for readings of a known time.
func TestStoryDoubtfulWarningsArePushedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		systolic []int
		want     []string
	}{
		"the same":            {[]int{165, 164, 163, 165}, []string{"midway", "trend", "trend", "trend"}},
		"worse by a quarter":  {[]int{165, 176, 177, 170}, []string{"midway", "worse", "trend", "trend"}},
		"a critical one":      {[]int{184, 165, 166}, []string{"critical", "trend", "trend"}},
		"below midway, alone": {[]int{152, 153, 165}, []string{"trend", "trend", "midway"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0, alerts.PushTrend)
			for range 3 {
				w.now = w.now.Add(time.Hour)
				w.postEvent(t, cuffEvent("T-9", "GW-1", 130, w.now)).want(200)
			}
			for _, systolic := range c.systolic {
				w.now = w.now.Add(10 * time.Minute)
				w.postEvent(t, cuffEvent("T-9", "GW-1", systolic, w.now.AddDate(0, 0, -3))).want(200)
			}
			var got []string
			for _, alert := range w.alertsOf() {
				if alert["type"] == "blood_pressure" {
					got = append(got, fmt.Sprint(alert["push_rule"]))
				}
			}
			slices.Reverse(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%v: pushed by %q, want %q", c.systolic, got, c.want)
			}
		})
	}
}
