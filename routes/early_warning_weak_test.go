package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
)

// An early warning that rests on a weak signal waits for the same repeat as the reading, at most ten minutes, and escalates then.
func TestStoryEarlyWarningOfAWeakSignal(t *testing.T) {
	const (
		grave  = `"systolic":93,"diastolic":62,"pulse":127`
		better = `"systolic":128,"diastolic":78,"pulse":80`
	)
	oximeter := func(values string) func(w *nightShift) {
		return func(w *nightShift) { w.send("OX-1", "pulse_oximetry", "%", w.now, values) }
	}
	cuff := func(values string) func(w *nightShift) {
		return func(w *nightShift) { w.send("CUFF-1", "blood_pressure", "mmHg", w.now, values) }
	}
	for name, test := range map[string]struct {
		before, first string // the cuff's values, then the oximeter's
		then          func(w *nightShift)
		held          bool
		atOnce        []string // escalations after what follows within the wait
		end           []string
		warnings      []string // early warnings in the end
	}{
		"no repeat": {
			grave, `"spo2":89,"perfusion_index":0.2`, func(*nightShift) {}, true, nil, []string{"stat open system"}, []string{"7/7 critical active"},
		},
		"denied": {grave, `"spo2":89,"perfusion_index":0.2`, oximeter(`"spo2":97,"perfusion_index":3`), true, nil, nil, []string{"7/7 critical auto_resolved"}},
		"in range with a weak signal": {
			grave, `"spo2":89,"perfusion_index":0.2`, oximeter(`"spo2":97,"perfusion_index":0.1`), true, nil, []string{"stat open system"}, []string{"7/7 critical active"},
		},
		"confirmed by a good signal": {
			grave, `"spo2":89,"perfusion_index":0.2`, oximeter(`"spo2":90,"perfusion_index":1.2`), true,
			[]string{"stat open system"},
			[]string{"stat open system"},
			[]string{"7/7 critical active"},
		},
		"confirmed by a weak signal": {
			grave, `"spo2":89,"perfusion_index":0.2`, oximeter(`"spo2":89,"perfusion_index":0.1`), true,
			[]string{"stat open system"},
			[]string{"stat open system"},
			[]string{"7/7 critical active"},
		},
		"less, but still a warning": {
			`"systolic":93,"diastolic":62,"pulse":127`, `"spo2":89,"perfusion_index":0.2`, oximeter(`"spo2":95,"perfusion_index":1.2`), true,
			[]string{"urgent open system"},
			[]string{"urgent open system"},
			[]string{"7/7 critical auto_resolved", "5/5 warning active"},
		},
		"as grave without the oximeter": {
			grave, `"spo2":89,"perfusion_index":0.2`, func(w *nightShift) {
				w.send("TH-1", "body_temperature", "Cel", w.now, `"temperature":34.9`)
			}, true, []string{"stat open system"}, []string{"stat open system"}, []string{"10/7 critical active"},
		},
		"a warning of one weak value": {
			better, `"spo2":91,"perfusion_index":0.1`, func(*nightShift) {}, true, nil, []string{"urgent open system"}, []string{"3/5 warning active"},
		},
		"a warning of one weak value, denied": {
			better, `"spo2":91,"perfusion_index":0.1`, oximeter(`"spo2":98`), true, nil, nil, []string{"3/5 warning auto_resolved"},
		},
		"another kind meanwhile": {
			grave, `"spo2":89,"perfusion_index":0.2`, cuff(`"systolic":95,"diastolic":62,"pulse":126`), true, nil, []string{"stat open system"}, []string{"7/7 critical active"},
		},
		"a good signal": {
			grave, `"spo2":89,"perfusion_index":0.3`, func(*nightShift) {}, false, []string{"stat open system"}, []string{"stat open system"}, []string{"7/7 critical active"},
		},
		"the weak value adds nothing": {
			`"systolic":88,"diastolic":62,"pulse":127`, `"spo2":97,"perfusion_index":0.1`, func(*nightShift) {}, false,
			[]string{"urgent open system"},
			[]string{"urgent open system"},
			[]string{"5/5 warning active"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := clinicRules
			rules.EarlyWarning, rules.WarningPush = true, alerts.PushEach
			w := newNightShiftWithRules(t, rules)
			w.t = t
			cuff(test.before)(w)
			w.now = w.now.Add(time.Minute)
			oximeter(test.first)(w)
			if test.held {
				wantSame(t, "at first", w.statEscalations(t), nil)
				alert := w.alertsOf("type", "early_warning")[0]
				wantIn(t, alert, object{"status": "active", "held_until": w.now.Add(10 * time.Minute).Format("2006-01-02T15:04:05Z")})
			}
			w.advance(3 * time.Minute)
			test.then(w)
			wantSame(t, "after the next", w.statEscalations(t), test.atOnce)
			w.advance(6*time.Minute + 59*time.Second)
			wantSame(t, "before the end", w.statEscalations(t), test.atOnce)
			w.advance(2 * time.Minute)
			wantSame(t, "at the end", w.statEscalations(t), test.end)
			w.wantEarlyWarnings("at the end", w.patient, test.warnings...)
			for _, alert := range w.alertsOf("type", "early_warning") {
				if alert["held_until"] != nil || fmt.Sprint(alert["status"]) == "active" && alert["escalation_id"] == nil {
					t.Errorf("held until %v, escalation %v: %v", alert["held_until"], alert["escalation_id"], alert["message"])
				}
			}
		})
	}
}
