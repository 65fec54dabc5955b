package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// sendEmergency sends a patient's emergency and returns the URL of its escalation.
func (w ward) sendEmergency(t *testing.T, name string) (path string) {
	t.Helper()
	patient := w.enrol(t, name, nil)
	w.signed(t, oxygen(name, 70, now())).expect(t, 200)
	a := w.get(t, "/api/v1/escalations/?patient_id="+patient, w.Admin(t)).expect(t, 200)
	wantAt(t, a, object{"count": 1.0, "results.0.priority": "stat"})
	return fmt.Sprintf("/api/v1/escalations/%.0f/", at(t, a, "results.0.id"))
}

// escalationHistory returns the history of an escalation, as "event: detail".
func (w ward) escalationHistory(t *testing.T, escalation string) (list []string) {
	t.Helper()
	history, _ := at(t, w.get(t, escalation, w.Admin(t)).expect(t, 200), "history").([]any)
	for _, one := range history {
		step := one.(object)
		list = append(list, fmt.Sprint(step["event"], ": ", step["detail"]))
	}
	return list
}

// A night in a practice with one administrator, no one on call and no manager. Tiers without a recipient are skipped without
// delay, and the emergency reaches the administrator.
func TestEscalationWithoutOnCall(t *testing.T) {
	t.Parallel()
	pushes := newPushCatcher(t, now)
	w := ward{newPractice(t, append(pushes.settings, "VIGIL_ESCALATION_TIERS_STAT=1s,1h,2h")...).serve(t, ""), now().Location()}
	pushes.subscribe(t, w.practice, w.Admin(t), "/admin")
	wantAt(t, w.get(t, "/api/v1/on-call/now/", w.Admin(t)).expect(t, 200), object{"user_id": nil, "until": nil})
	escalation := w.sendEmergency(t, "Alone")
	eventually(t, 2*within, "the ladder's first step", func() bool {
		w.runJob(t, "overdue-escalations")
		return at(t, w.get(t, escalation, w.Admin(t)).expect(t, 200), "tier") != 0.0
	})
	wantAt(t, w.get(t, escalation, w.Admin(t)).expect(t, 200), object{"tier": 3.0, "status": "open"})
	said := strings.Join(w.escalationHistory(t, escalation), "\n")
	for _, step := range []string{"No one is on call.", "There is no clinical manager.", "Clinical managers and administrators."} {
		if !strings.Contains(said, step) {
			t.Errorf("the history lacks %q:\n%s", step, said)
		}
	}
	eventually(t, within, "the administrator hears of it", func() bool {
		return strings.Contains(string(pushes.opened()), "An escalation has not been answered in time.")
	})
	if opened := string(pushes.opened()); strings.Contains(opened, "Alone") || strings.Contains(opened, "SpO") {
		t.Errorf("a push contains PHI: %s", opened)
	}
	// Not repeated before its next due time.
	w.runJob(t, "overdue-escalations")
	if again := strings.Join(w.escalationHistory(t, escalation), "\n"); again != said {
		t.Errorf("a minute later the history is\n%s", again)
	}
	// A manager who joins later and takes it ends the ladder.
	manager := w.user(t, "clinical_manager", nil)
	w.send(t, "PATCH", escalation, manager, `{"status":"in_progress","notes":"calling"}`).expect(t, 200)
	w.runJob(t, "overdue-escalations")
	wantAt(t, w.get(t, escalation, w.Admin(t)).expect(t, 200), object{"tier": 3.0, "status": "in_progress", "assigned_to": "clinical_manager@vigil.test"})
}
