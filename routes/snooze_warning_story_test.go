package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// quiet snoozes warnings of a type.
func (s *nightShift) quiet(alertType string, length time.Duration) {
	s.t.Helper()
	s.request(authz.Nurse, "POST", "/patients/"+s.patient+"/snoozes/", object{
		"type": alertType, "reason": "Known.", "ends_at": s.now.Add(length).UTC().Format(time.RFC3339Nano),
	}).want(201)
}

// A snooze of warnings made at 152/94 is broken at the midpoint to the critical bound, of either value; one made at 165 only by 20 mmHg more,
// which is critical, and by the other value.
func TestStoryWarningBreaksSnooze(t *testing.T) {
	for name, at := range snoozeNights {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.now = at
			w.cuff(152, 94, 0)
			w.quiet("blood_pressure", 29*24*time.Hour)
			for i, c := range []struct {
				systolic, diastolic int
				snoozed             bool
			}{
				{152, 94, true},
				{159, 104, true},
				{160, 94, false},
				{178, 118, false},
				{155, 105, false},
				{150, 92, true},
				{158, 93, true},
				{88, 70, true},
				{85, 70, false},
				{81, 70, false},
			} {
				w.now = w.now.Add(26 * time.Hour)
				if got := w.cuff(c.systolic, c.diastolic, 0); got["level"] != "warning" || got["snoozed"] != c.snoozed {
					t.Errorf("%d: %d/%d is %v, snoozed %v", i, c.systolic, c.diastolic, got["level"], got["snoozed"])
				}
			}
			w.now = w.now.Add(26 * time.Hour)
			w.want("a critical one", w.cuff(184, 94, 0), object{"level": "critical", "snoozed": false})
		})
	}
	w := newNightShift(t, 0)
	first := w.cuff(165, 94, 0)
	w.quiet("blood_pressure", 29*24*time.Hour)
	for _, c := range []struct {
		systolic, diastolic int
		snoozed             bool
	}{{161, 94, true}, {170, 94, true}, {179, 104, true}, {150, 106, false}} {
		w.now = w.now.Add(26 * time.Hour)
		w.want("after 165", w.cuff(c.systolic, c.diastolic, 0), object{"level": "warning", "snoozed": c.snoozed})
	}
	w.retract(first) // a mistyped value is no baseline
	w.wantSnoozes(1)
	w.now = w.now.Add(time.Hour)
	w.want("165 was retracted", w.cuff(161, 94, 0), object{"level": "warning", "snoozed": false})
}

// For other kinds a tenth of the range or the midpoint breaks the snooze, the nearer of the two.
func TestStoryWarningBreaksSnoozeOfOtherKinds(t *testing.T) {
	w := newNightShift(t, 0)
	w.want("the first", w.oxygen(92), object{"level": "warning"})
	w.quiet("pulse_oximetry", 29*24*time.Hour)
	for _, c := range []struct {
		spo2    int
		snoozed bool
	}{{91, true}, {90, false}, {89, false}, {92, true}} {
		w.now = w.now.Add(2 * time.Hour)
		w.want("SpO2", w.oxygen(c.spo2), object{"level": "warning", "snoozed": c.snoozed})
	}
}
