package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A warning ends with the next normal reading within 1.5 times the patient's expected interval, at least 24 hours: 36 for one reading a
// day, 126 for two a week. Neither the time zone nor a change of clocks matters.
func TestStoryAutoResolveWindow(t *testing.T) {
	type schedule = object
	daily := func(perDay int) schedule { return schedule{"blood_pressure": object{"per_day": perDay}} }
	on := func(perDay int, days ...string) schedule {
		return schedule{"blood_pressure": object{"per_day": perDay, "days": days}}
	}
	for name, c := range map[string]struct {
		schedule any
		hours    float64
	}{
		"none":                {nil, 36},
		"once a day":          {daily(1), 36},
		"twice a day":         {daily(2), 24},
		"eight a day":         {daily(8), 24},
		"Monday and Thursday": {on(1, "monday", "thursday"), 126},
		"weekdays":            {on(1, "monday", "tuesday", "wednesday", "thursday", "friday"), 50.4},
		"twice on Sunday":     {on(2, "sunday"), 126},
		"once a week":         {on(1, "sunday"), 252},
		"another kind only":   {schedule{"weight": object{"per_day": 1, "days": []string{"monday"}}}, 24},
		"nothing":             {schedule{}, 24},
	} {
		for _, zone := range []string{"America/New_York", "Australia/Lord_Howe"} {
			t.Run(name+" in "+zone, func(t *testing.T) {
				w := newWard(t, object{"time_zone": zone, "monitoring_schedule": c.schedule})
				start := time.Date(2026, 3, 6, 13, 0, 0, 0, time.UTC) // across the change of clocks
				end := start.Add(time.Duration(c.hours * float64(time.Hour)))
				w.now = start
				w.addReading("device", 152, 84, w.now)
				w.now = end.Add(time.Second)
				w.addReading("device", 122, 78, w.now)
				w.wantAlertStates("after the window", "152 warning active")

				w = newWard(t, object{"time_zone": zone, "monitoring_schedule": c.schedule})
				w.now = start
				w.addReading("device", 152, 84, w.now)
				w.now = end
				w.addReading("device", 122, 78, w.now)
				w.wantAlertStates("within the window", "152 warning auto_resolved")
			})
		}
	}
}

// The schedule in force when the normal reading arrives decides, also for a critical alert, a pulse that two kinds measure, a retraction,
// and readings out of order.
func TestStoryAutoResolveWindowFollowsTheSchedule(t *testing.T) {
	change := func(w *ward, schedule any) {
		w.request(authz.ClinicalManager, "PATCH", "/patients/"+w.patient+"/", object{"monitoring_schedule": schedule}).want(200)
	}
	w := newWard(t, nil)
	w.addReading("device", 152, 84, w.now)
	w.now = w.now.Add(time.Hour)
	w.addReading("device", 154, 84, w.now)
	change(w, object{"blood_pressure": object{"per_day": 2}})
	w.now = w.now.Add(30 * time.Hour)
	w.addReading("device", 122, 78, w.now)
	w.wantAlertStates("now twice a day", "152 warning active", "154 warning active")
	change(w, nil)
	w.now = w.now.Add(5 * time.Hour)
	w.addReading("device", 121, 78, w.now)
	w.wantAlertStates("once a day again", "152 warning auto_resolved", "154 warning auto_resolved")

	w = newWard(t, nil)
	w.addReading("device", 204, 84, w.now)
	start := w.now
	w.now = start.Add(26 * time.Hour)
	one := w.addReading("device", 122, 78, w.now)
	w.now = start.Add(35 * time.Hour)
	w.addReading("device", 123, 78, w.now)
	w.wantAlertStates("two normals in 35 hours", "204 critical auto_resolved")
	w.retract(one)
	w.wantAlertStates("one retracted", "204 critical active")
	w.now = start.Add(35*time.Hour + time.Minute)
	w.addReading("device", 124, 78, start.Add(34*time.Hour))
	w.wantAlertStates("one out of order", "204 critical auto_resolved")
}
