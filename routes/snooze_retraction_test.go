package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// snoozeOf snoozes alerts of a type, critical ones included.
func (s *nightShift) snoozeOf(alertType string, length time.Duration) {
	s.t.Helper()
	s.request(authz.Nurse, "POST", "/patients/"+s.patient+"/snoozes/", object{
		"type": alertType, "reason": "Known.", "include_critical": true, "ends_at": s.now.Add(length).UTC().Format(time.RFC3339Nano),
	}).want(201)
}

// retract marks the reading behind an alert as entered in error.
func (s *nightShift) retract(alert object) {
	s.t.Helper()
	s.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", alert["observation_id"]), object{"reason": "A cold finger."}).want(200)
}

// wantSnoozes checks how many snoozes are in force.
func (s *nightShift) wantSnoozes(n int) {
	s.t.Helper()
	if got := s.request(authz.Nurse, "GET", "/patients/"+s.patient+"/snoozes/?in_force=true", nil).results(); len(got) != n {
		s.t.Errorf("%d snoozes are in force, want %d", len(got), n)
	}
}

// SpO2 70, snoozed with critical alerts, is retracted: the snooze has no baseline left, and the next 72 alerts in full.
func TestStoryRetractedUnderSnooze(t *testing.T) {
	for name, at := range snoozeNights {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.now = at
			wrong := w.oxygen(70)
			w.wantPushed("the first", 1, 1)
			w.snoozeOf("pulse_oximetry", 4*time.Hour)
			w.now = w.now.Add(5 * time.Minute)
			w.retract(wrong)
			w.wantStat("retracted", 0)
			w.wantSnoozes(0)
			wantSame(t, "its end", w.queryRows(t, `SELECT event || ' ' || actor_email FROM audit_log WHERE event = 'snooze.end'`),
				[]string{"snooze.end " + w.people[authz.Nurse].Email()})
			wantSame(t, "ended by", w.queryRows(t, `SELECT ended_by FROM snoozes`), []string{w.people[authz.Nurse].Email()})
			w.wantPushed("retracted", 0, 0)
			w.now = w.now.Add(5 * time.Minute)
			next := w.oxygen(72)
			w.want("the next", next, object{"level": "critical", "snoozed": false, "status": "active"})
			w.wantStat("the next", 1)
			w.wantPushed("the next", 1, 1)
		})
	}
}

// After a retraction a snooze's baseline is what it would have been without the reading, and never more.
func TestSnoozeBaselineAfterRetraction(t *testing.T) {
	for name, test := range map[string]struct {
		before   func(w *nightShift) object // returns the alert of the reading to retract
		during   func(w *nightShift)
		inForce  int // snoozes after the retraction
		notified int // pushes about alerts because of the retraction
		next     int
		nextTold bool
	}{
		"another one is left, and the next is like it": {func(w *nightShift) object { w.oxygen(84); return w.oxygen(70) }, nil, 1, 0, 83, false},
		"another one is left, and the next is worse":   {func(w *nightShift) object { w.oxygen(84); return w.oxygen(70) }, nil, 1, 0, 72, true},
		"a worse one is left":                          {func(w *nightShift) object { wrong := w.oxygen(84); w.oxygen(70); return wrong }, nil, 1, 0, 69, false},
		"acknowledged": {func(w *nightShift) object {
			wrong := w.oxygen(70)
			w.acknowledge(wrong)
			return wrong
		}, nil, 0, 0, 85, true},
		"resolved before the withdrawal": {func(w *nightShift) object { return w.oxygen(70) }, func(w *nightShift) {
			w.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/resolve/", w.newest()["id"]), object{}).want(200)
		}, 0, 0, 85, true},
		"a suppressed reading that is worse than the rest alerts": {func(w *nightShift) object { w.oxygen(86); return w.oxygen(70) }, func(w *nightShift) {
			w.oxygen(72)
		}, 0, 1, 85, true},
		"what came quietly since and is like what is left stays quiet": {func(w *nightShift) object { w.oxygen(84); return w.oxygen(70) }, func(w *nightShift) {
			w.oxygen(83)
		}, 1, 0, 83, false},
		"what came quietly since a snooze that is for nothing": {func(w *nightShift) object { return w.oxygen(70) }, func(w *nightShift) {
			w.oxygen(71)
		}, 0, 1, 71, true},
		"a reading that came during the snooze": {func(w *nightShift) object { w.oxygen(70); return nil }, func(w *nightShift) {
			w.oxygen(71)
		}, 1, 0, 71, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			wrong := test.before(w)
			w.closeEscalations()
			w.snoozeOf("pulse_oximetry", 4*time.Hour)
			w.now = w.now.Add(40 * time.Minute) // no notification interval suppresses a push now
			w.pushed(w.people[authz.Nurse], notifications.Alerts)
			w.pushed(w.people[authz.ClinicalManager], notifications.Escalations)
			if test.during != nil {
				test.during(w)
			}
			if wrong == nil {
				wrong = w.newest()
			}
			w.now = w.now.Add(time.Minute)
			w.retract(wrong)
			w.wantSnoozes(test.inForce)
			w.wantPushed("with the retraction", test.notified, test.notified)
			w.wantStat("with the retraction", test.notified)
			w.closeEscalations()
			w.now = w.now.Add(time.Hour)
			w.want("the next", w.oxygen(test.next), object{"snoozed": !test.nextTold})
		})
	}
}

// Retraction does not change a snooze without a baseline, one that leaves out critical alerts, or one of another type.
func TestRetractionKeepsOtherSnoozes(t *testing.T) {
	w := newNightShift(t, 0)
	w.snoozeOf("pulse_oximetry", 4*time.Hour)
	w.now = w.now.Add(time.Minute)
	wrong := w.oxygen(87)
	w.snooze(4*time.Hour, true).want(201)
	w.request(authz.Nurse, "POST", "/patients/"+w.patient+"/snoozes/", object{
		"type": "pulse", "reason": "Known.", "ends_at": w.now.Add(time.Hour).UTC().Format(time.RFC3339Nano),
	}).want(201)
	w.retract(wrong)
	w.wantSnoozes(3)
}

// A gain over another person's weight is reversed when that weight is retracted, and a snooze for it ends.
func TestCorrectedWeightUnderSnooze(t *testing.T) {
	w := newNightShift(t, 0)
	weigh := func(kg float64) object {
		w.now = w.now.Add(24 * time.Hour)
		w.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": w.patient, "weight_kg": kg, "measured_at": w.now.UTC().Format(time.RFC3339Nano)}).want(201)
		return w.newest()
	}
	w.now = w.now.Add(-72 * time.Hour)
	weigh(74)
	low := w.queryRows(t, `SELECT id FROM observations`)[0]
	weigh(80)
	w.want("gain", w.newest(), object{"type": "weight", "level": "critical"})
	w.snoozeOf("weight", 4*time.Hour)
	w.request(authz.Nurse, "POST", "/ingestion/observations/"+low+"/entered-in-error/", object{"reason": "The child."}).want(200)
	w.wantSnoozes(0)
	w.wantStat("corrected", 0)
}

// An implausible value is no baseline before a person confirms it, nor after it is retracted.
func TestImplausibleSnoozeBaseline(t *testing.T) {
	w := newNightShift(t, 0)
	w.postEvent(t, measured("OX-1", "GW-1", "pulse_oximetry", "%", w.now, `"spo2":45`)).want(400)
	event := fmt.Sprint(w.newest()["quarantine_id"])
	w.snoozeOf("pulse_oximetry", time.Hour)
	wantSame(t, "known", w.queryRows(t, `SELECT COALESCE(known, '') FROM snoozes WHERE ended_at = ''`), []string{"null"})
	w.request(authz.Nurse, "POST", "/ingestion/quarantine/"+event+"/confirm/", object{"notes": "Seen."}).want(201)
	confirmed := w.newest()
	w.want("confirmed", confirmed, object{"type": "pulse_oximetry", "snoozed": false})
	w.snoozeOf("pulse_oximetry", time.Hour)
	w.retract(confirmed)
	w.wantSnoozes(0)
	w.now = w.now.Add(time.Minute)
	w.want("the next", w.oxygen(60), object{"snoozed": false})
}
