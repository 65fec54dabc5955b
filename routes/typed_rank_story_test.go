package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/triage"
)

// answerAll answers every open alert and escalation.
func (w *ward) answerAll() {
	w.t.Helper()
	for _, alert := range w.request(authz.Nurse, "GET", "/alerts/"+query("status", "active", "page_size", "100"), nil).results() {
		w.request(authz.Nurse, "POST", "/alerts/"+formatID(alert)+"/acknowledge/", nil).want(200)
	}
	for _, escalation := range w.request(authz.Nurse, "GET", "/escalations/"+query("status", "open"), nil).results() {
		w.request(authz.Provider, "PATCH", "/escalations/"+formatID(escalation)+"/", object{"status": "resolved", "resolution_notes": "Called."}).want(200)
	}
}

// An answered critical finding stays in its band for a day until a device or staff reading differs, however many normal
// readings the patient types; those are shown as the latest. A critical reading typed by the patient is resolved by the
// patient's own.
func TestStoryTypedNormalsKeepTheBand(t *testing.T) {
	for name, test := range map[string]struct {
		critical string
		then     []string // sources of normal readings, two minutes apart
		handled  bool
	}{
		"device, then typed twice":          {"device", []string{"patient", "patient"}, true},
		"staff, then typed":                 {"staff", []string{"patient"}, true},
		"device, then staff":                {"device", []string{"staff"}, false},
		"device, then typed and the device": {"device", []string{"patient", "device"}, false},
		"device, then the device and typed": {"device", []string{"device", "patient"}, false},
		"typed, then typed":                 {"patient", []string{"patient"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, nil)
			w.addReading(test.critical, 204, 124, w.now)
			w.answerAll()
			if score, _ := w.score(); score != 79 { // 76 + 9 × (0.2 + 0.8 × (24 ÷ 120)^1.2)
				t.Errorf("answered: %v", score)
			}
			var last string
			for i, by := range test.then {
				w.now = w.now.Add(2 * time.Minute)
				last = w.addReading(by, 128-i, 78, w.now)
			}
			want := func(what string, handled bool) {
				t.Helper()
				row := w.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]
				if (row["handling"] == "handled") != handled || (row["risk_level"] == "critical") != handled {
					t.Errorf("%s: %v %v %v", what, row["risk_score"], row["risk_level"], row["handling"])
				}
				stored := w.queryRows(t, `SELECT risk_score || ' ' || latest_vitals FROM triage_scores`)
				if _, err := triage.Rescore(w.app, w.patient, w.now); err != nil {
					t.Fatal(err)
				}
				if anew := w.queryRows(t, `SELECT risk_score || ' ' || latest_vitals FROM triage_scores`); anew[0] != stored[0] {
					t.Errorf("%s: stored %s, recomputed %s", what, stored, anew)
				}
			}
			row := w.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["latest_vitals"].(object)
			if shown := row["blood_pressure"].(object)["systolic"]; shown != float64(129-len(test.then)) || len(row) != 1 {
				t.Errorf("shown are %v", row)
			}
			want("after the normals", test.handled)
			w.retract(last)
			if len(test.then) == 1 {
				want("retracted", true)
			}
			w.now = w.now.Add(24 * time.Hour)
			if _, err := triage.Rescore(w.app, w.patient, w.now); err != nil {
				t.Fatal(err)
			}
			if score, level := w.score(); level == "critical" {
				t.Errorf("a day later: %v %s", score, level)
			}
		})
	}
}
