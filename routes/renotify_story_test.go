package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
)

// oxygen stores a reading that staff typed.
func (s *nightShift) oxygen(spo2 int) object {
	s.t.Helper()
	s.request(authz.Nurse, "POST", "/ingestion/pulse-oximetry/", object{
		"patient_id": s.patient, "spo2": spo2, "measured_at": s.now.UTC().Format(time.RFC3339Nano),
	}).want(201)
	return s.newest()
}

// joined returns the steps by which further readings joined the open escalation.
func (s *nightShift) joined() (list []string) {
	s.t.Helper()
	for _, e := range s.escalationsOf() {
		steps, _ := s.request(authz.Nurse, "GET", fmt.Sprintf("/escalations/%v/", e["id"]), nil).want(200).at("history").([]any)
		for _, step := range steps {
			if step := step.(object); step["event"] == "alert_joined" {
				list = append(list, fmt.Sprint(step["detail"]))
			}
		}
	}
	return list
}

// A patient who gets worse within the half hour is notified at once, compared with the last notified values and not with
// readings suppressed since; repeated values do not notify again. The escalation's history has the worse values, the
// push has none. The last alert of two parameters in one reading asks whether two people use the cuff.
func TestStoryWorseWithoutASnooze(t *testing.T) {
	type step struct {
		after    time.Duration
		reads    func(w *nightShift)
		notified bool // both the care team and the escalation's assignee are notified
		more     int  // further alerts that notify the care team
	}
	pressure := func(systolic, diastolic, pulse int) func(w *nightShift) {
		return func(w *nightShift) { w.cuff(systolic, diastolic, pulse) }
	}
	oxygen := func(spo2 int) func(w *nightShift) { return func(w *nightShift) { w.oxygen(spo2) } }
	const minute = time.Minute
	for name, steps := range map[string][]step{
		"232 after 188":                    {{minute, pressure(188, 110, 0), true, 0}, {5 * minute, pressure(190, 112, 0), false, 0}, {5 * minute, pressure(232, 130, 0), true, 0}, {minute, pressure(233, 131, 0), false, 0}},
		"exactly a tenth":                  {{minute, pressure(188, 110, 0), true, 0}, {minute, pressure(199, 110, 0), false, 0}, {minute, pressure(200, 110, 0), true, 0}},
		"the other parameter":              {{minute, pressure(188, 110, 0), true, 0}, {minute, pressure(188, 120, 0), true, 0}, {minute, pressure(188, 121, 0), false, 0}},
		"the other direction":              {{minute, pressure(188, 110, 0), true, 0}, {29 * minute, pressure(78, 50, 0), true, 0}},
		"gradually":                        {{minute, oxygen(86), true, 0}, {minute, oxygen(84), false, 0}, {minute, oxygen(83), false, 0}, {minute, oxygen(82), true, 0}, {minute, oxygen(79), false, 0}, {minute, oxygen(78), true, 0}},
		"another kind":                     {{minute, oxygen(80), true, 0}, {minute, pressure(190, 110, 0), true, 0}, {minute, oxygen(80), false, 0}, {minute, pressure(190, 110, 0), false, 0}},
		"the pulse beside the pressure":    {{minute, pressure(190, 110, 0), true, 0}, {minute, pressure(120, 70, 140), true, 0}, {minute, pressure(120, 70, 141), false, 0}},
		"two parameters in one reading":    {{minute, pressure(190, 110, 140), true, 1}, {minute, pressure(120, 70, 141), false, 0}, {minute, pressure(191, 111, 80), false, 1}},
		"worse and better and worse":       {{minute, oxygen(80), true, 0}, {minute, oxygen(86), false, 0}, {minute, oxygen(79), false, 0}, {minute, oxygen(76), true, 0}},
		"after the half hour as before":    {{minute, oxygen(80), true, 0}, {29 * minute, oxygen(80), false, 0}, {2 * minute, oxygen(80), true, 0}, {minute, oxygen(79), false, 0}},
		"the last notified, not the worst": {{minute, pressure(232, 110, 0), true, 0}, {31 * minute, pressure(184, 110, 0), true, 0}, {minute, pressure(230, 110, 0), true, 0}},
		"better than the last notified":    {{minute, pressure(232, 110, 0), true, 0}, {minute, pressure(184, 110, 0), false, 0}},
		"a warning after a critical one":   {{minute, oxygen(80), true, 0}, {minute, func(w *nightShift) { w.cuff(150, 80, 0); w.pushed(w.people[authz.Nurse], "alerts") }, false, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			tellings := 0
			for i, s := range steps {
				w.now = w.now.Add(s.after)
				s.reads(w)
				n := 0
				if s.notified {
					n, tellings = 1, tellings+1
				}
				w.wantPushed(fmt.Sprintf("step %d", i+1), n+s.more, n)
			}
			w.wantStat("all", 1)
			if got := w.joined(); len(got) != tellings-1 {
				t.Errorf("its history has %q", got)
			}
			for _, row := range w.queryRows(t, `SELECT title || ' ' || body FROM push_deliveries`) {
				if strings.ContainsAny(row, "0123456789") || strings.Contains(row, "Lovelace") {
					t.Errorf("push %q", row)
				}
			}
		})
	}
}

// Worse values are in the escalation's history and in the app's list; the reason stays the original one.
func TestWorseValuesAreInHistory(t *testing.T) {
	w := newNightShift(t, 0)
	first := w.cuff(188, 110, 0)
	w.now = w.now.Add(10 * time.Minute)
	w.cuff(232, 130, 0)
	w.now = w.now.Add(31 * time.Minute)
	w.cuff(231, 110, 0)
	wantSame(t, "history", w.joined(), []string{
		"A worse critical reading: Systolic 232 mmHg is at or above the critical limit 180. Diastolic 130 mmHg is at or above the critical limit 120.",
		"A further critical reading.",
	})
	if e := w.escalationsOf()[0]; e["reason"] != first["message"] || e["alert_id"] != first["id"] {
		t.Errorf("the escalation is about %v: %v", e["alert_id"], e["reason"])
	}
	w.pushed(w.people[authz.ClinicalManager], "escalations")
	list := w.request(authz.ClinicalManager, "GET", "/notifications/?channel=escalations", nil).results()
	if len(list) != 3 || !strings.Contains(fmt.Sprint(list[1]["body"]), "stat: A worse critical reading: Systolic 232 mmHg") {
		t.Errorf("the list has %v", list)
	}
}

// After the escalation was closed, the next critical reading opens another; the care team, notified a moment ago, is
// notified again only if it is worse.
func TestWorseAfterTheEscalationWasClosed(t *testing.T) {
	w := newNightShift(t, 0)
	w.cuff(188, 110, 0)
	w.wantPushed("the first", 1, 1)
	w.closeEscalations()
	w.now = w.now.Add(5 * time.Minute)
	w.cuff(189, 110, 0)
	w.wantPushed("the same", 0, 1)
	w.closeEscalations()
	w.now = w.now.Add(5 * time.Minute)
	w.cuff(232, 130, 0)
	w.wantPushed("worse", 1, 1)
	w.wantStat("worse", 1)
}

// A retracted reading is not the comparison for the next one: a value that was never measured suppresses none that was.
func TestWorseThanRemainingReadings(t *testing.T) {
	w := newNightShift(t, 0)
	w.cuff(188, 110, 0)
	w.now = w.now.Add(5 * time.Minute)
	wrong := w.cuff(255, 110, 0)
	w.wantPushed("both", 2, 2)
	w.now = w.now.Add(time.Minute)
	w.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", wrong["observation_id"]), object{"reason": "A child's arm."}).want(200)
	w.now = w.now.Add(5 * time.Minute)
	w.cuff(190, 110, 0)
	w.wantPushed("known", 0, 0)
	w.now = w.now.Add(5 * time.Minute)
	w.cuff(232, 110, 0)
	w.wantPushed("worse than the remaining reading", 1, 1)
}

// A critical reading that newer normal ones have already resolved is stored without a notification, however bad it was.
func TestResolvedReadingIsNotWorse(t *testing.T) {
	w := newNightShift(t, 0)
	w.cuff(188, 110, 0)
	w.wantPushed("the first", 1, 1)
	began := w.now
	for _, after := range []time.Duration{10 * time.Minute, 12 * time.Minute} {
		w.now = began.Add(after)
		w.cuff(120, 70, 0)
	}
	w.now = began.Add(15 * time.Minute)
	w.want("between", w.cuffAt(began.Add(5*time.Minute), 232, 130, 0), object{"status": "auto_resolved", "level": "critical"})
	w.wantPushed("over", 0, 0)
	w.cuff(233, 131, 0)
	w.wantPushed("it is again", 1, 1)
	if n := len(w.joined()); n != 1 {
		t.Errorf("its history has %d steps", n)
	}
}

// Missed readings for days, then a critical one: those notified of the first are notified of the second at once.
func TestCriticalJoinsLessUrgentEscalation(t *testing.T) {
	w := newNightShift(t, 0)
	err := escalations.Decision{Open: escalations.Draft{PatientID: w.patient, Priority: escalations.Urgent, Reason: "Missed for three days."}}.
		Write(w.app, "000000000000001", "", w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.wantPushed("missed readings", 0, 1)
	w.now = w.now.Add(5 * time.Minute)
	w.oxygen(70)
	w.wantPushed("critical", 1, 1)
	w.wantStat("critical", 1)
}

// An implausible value further beyond the bound than the last notified one also notifies at once; repeated ones do not.
func TestImplausibleAndWorse(t *testing.T) {
	w := newNightShift(t, 0)
	pulse := func(pulse int) {
		w.now = w.now.Add(time.Minute)
		w.postEvent(t, measured("BP-1", "GW-1", "blood_pressure", "mmHg", w.now, fmt.Sprintf(`"systolic":120,"diastolic":70,"pulse":%d`, pulse)))
	}
	pulse(39)
	w.wantPushed("critical", 1, 1)
	pulse(28)
	w.wantPushed("an implausible value", 1, 1)
	for range 5 {
		pulse(28)
	}
	w.wantPushed("the same", 0, 0)
	pulse(27)
	w.wantPushed("worse", 1, 1)
	if n := len(w.joined()); n != 2 {
		t.Errorf("its history has %d steps", n)
	}
	for _, step := range w.joined() {
		if !strings.HasPrefix(step, "A worse critical reading: ") {
			t.Errorf("its history has %q", step)
		}
	}
	w.closeEscalations()
	pulse(27)
	w.wantPushed("the same, in another escalation", 0, 1)
	pulse(36)
	w.wantPushed("critical, and no worse", 0, 0)
}
