package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A normal reading typed by the patient does not suppress device alerts at the end of a snooze: it resolves only
// readings typed by the patient.
func TestStoryTypedNormalAtSnoozeEnd(t *testing.T) {
	for name, test := range map[string]struct {
		critical bool // the snooze covers critical alerts
		during   func(w *nightShift)
		alerted  int
	}{
		"acknowledged, then typed": {true, func(w *nightShift) {
			w.acknowledge(w.cuff(204, 124, 0))
			w.now = w.now.Add(2 * time.Hour)
			w.typed(w.portal(), 120)
		}, 1},
		"acknowledged, then staff": {true, func(w *nightShift) {
			w.acknowledge(w.cuff(204, 124, 0))
			w.now = w.now.Add(2 * time.Hour)
			w.typed(w.people[authz.Nurse], 120)
		}, 0},
		"a warning, then typed": {false, func(w *nightShift) {
			w.cuff(150, 80, 0)
			w.now = w.now.Add(time.Minute)
			w.typed(w.portal(), 120)
		}, 1},
		"a normal one, then a critical one typed and acknowledged": {true, func(w *nightShift) {
			w.cuff(120, 70, 0)
			w.now = w.now.Add(time.Minute)
			w.typed(w.portal(), 182)
			w.acknowledge(w.newest())
		}, 1},
		"acknowledged, then a critical and a normal one typed": {true, func(w *nightShift) {
			w.acknowledge(w.cuff(204, 124, 0))
			w.now = w.now.Add(time.Hour)
			w.typed(w.portal(), 182)
			w.acknowledge(w.newest())
			w.now = w.now.Add(time.Hour)
			w.typed(w.portal(), 120)
		}, 1},
		"acknowledged, then a typed critical one resolved by typed normal ones": {true, func(w *nightShift) {
			w.acknowledge(w.cuff(204, 124, 0))
			w.now = w.now.Add(time.Hour)
			w.typed(w.portal(), 182)
			for range 3 {
				w.now = w.now.Add(time.Minute)
				w.typed(w.portal(), 120)
			}
		}, 1},
		"acknowledged, then a critical one typed and resolved": {true, func(w *nightShift) {
			w.acknowledge(w.cuff(204, 124, 0))
			w.now = w.now.Add(time.Hour)
			w.typed(w.portal(), 182)
			w.request(authz.Nurse, "POST", "/alerts/"+formatID(w.newest())+"/resolve/", object{"notes": "A mistake."}).want(200)
		}, 1},
		"acknowledged, then a worse one that is retracted": {true, func(w *nightShift) {
			w.acknowledge(w.cuff(204, 124, 0))
			w.now = w.now.Add(time.Hour)
			id := w.cuff(206, 124, 0)["observation_id"].(string)
			w.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "The husband."}).want(200)
		}, 1},
		"acknowledged and resolved, then a critical and a normal one typed": {true, func(w *nightShift) {
			w.request(authz.Nurse, "POST", "/alerts/"+formatID(w.cuff(204, 124, 0))+"/resolve/", object{"notes": "Treated."}).want(200)
			w.now = w.now.Add(time.Hour)
			w.typed(w.portal(), 182)
			w.acknowledge(w.newest())
			w.now = w.now.Add(time.Hour)
			w.typed(w.portal(), 120)
		}, 0},
		"the same, and a normal one typed": {true, func(w *nightShift) {
			w.cuff(120, 70, 0)
			w.now = w.now.Add(time.Minute)
			w.typed(w.portal(), 182)
			w.acknowledge(w.newest())
			w.now = w.now.Add(time.Minute)
			w.typed(w.portal(), 120)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.snooze(4*time.Hour, test.critical).want(201)
			test.during(w)
			w.pushed(w.people[authz.Nurse], "alerts")
			w.now = w.now.Add(4 * time.Hour)
			w.minute()
			w.minute()
			if got := w.pushed(w.people[authz.Nurse], "alerts"); got != test.alerted {
				t.Errorf("%d pushes at the end, want %d", got, test.alerted)
			}
		})
	}
}
