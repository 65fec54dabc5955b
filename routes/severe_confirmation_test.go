package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const confirm = 10 * time.Minute

// 182/118, then 130/80 and 128/78 within four minutes: a warning with their average and no escalation, also across a
// change of the wall clock.
func TestStorySevereNotConfirmed(t *testing.T) {
	for name, at := range snoozeNights {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, confirm)
			w.now = at
			portal := w.portal()
			w.registerPhone(portal)
			first := w.cuff(182, 118, 0)
			w.want("the first", first, object{
				"level": "critical", "status": "active", "escalation_id": nil, "held_until": at.Add(confirm).Format("2006-01-02T15:04:05Z"),
			})
			w.wantPushed("the first", 1, 0)
			if got := w.pushed(portal, "reminders"); got != 1 {
				t.Errorf("the patient got %d pushes", got)
			}
			w.advance(2 * time.Minute)
			w.cuff(130, 80, 0)
			w.advance(2 * time.Minute)
			w.wantStat("in between", 0)
			w.cuff(128, 78, 0)
			w.advance(time.Minute)
			list := w.alertsOf()
			if len(list) != 2 {
				t.Fatalf("%d alerts", len(list))
			}
			w.want("the first", list[1], object{"level": "critical", "status": "auto_resolved", "resolved_by": "system", "held_until": nil, "escalation_id": nil})
			w.want("the result", list[0], object{
				"level": "warning", "type": "blood_pressure", "status": "active", "parameter": "systolic", "value": 129.0, "threshold": 180.0,
				"observation_id": first["observation_id"], "escalation_id": nil,
			})
			if message := fmt.Sprint(list[0]["message"]); !strings.Contains(message, "129/79 mmHg") || !strings.Contains(message, "Systolic 182 mmHg") {
				t.Errorf("message %q", message)
			}
			w.wantPushed("the result", 1, 0)
			w.advance(30 * time.Minute)
			w.wantPushed("later", 0, 0)
			w.wantStat("later", 0)
			if again := w.alertsOf(); len(again) != 2 {
				t.Errorf("%d alerts later", len(again))
			}
		})
	}
}

// A second severe reading, or none: the escalation opens, at once or when the hold ends.
func TestStorySevereConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		then        func(w *nightShift)
		atOnce, end int // open escalations after the next readings, and after the hold
	}{
		"no second reading":                   {func(*nightShift) {}, 0, 1},
		"severe again":                        {func(w *nightShift) { w.cuff(190, 110, 0) }, 1, 1},
		"severe again in the other parameter": {func(w *nightShift) { w.cuff(150, 121, 0) }, 1, 1},
		"normal, then severe": {func(w *nightShift) {
			w.cuff(130, 80, 0)
			w.now = w.now.Add(time.Minute)
			w.cuff(186, 100, 0)
		}, 1, 1},
		"dangerously low":                {func(w *nightShift) { w.cuff(75, 38, 0) }, 1, 1},
		"one reading that is not severe": {func(w *nightShift) { w.cuff(150, 95, 0) }, 0, 0},
		"another critical value": {func(w *nightShift) {
			w.request(authz.Nurse, "POST", "/ingestion/pulse-oximetry/", object{"patient_id": w.patient, "spo2": 84, "measured_at": w.now.Format(time.RFC3339)}).want(201)
		}, 1, 1},
		"only an older reading": {func(w *nightShift) { w.cuffAt(w.now.Add(-2*time.Hour), 130, 80, 0) }, 0, 1},
		"acknowledged":          {func(w *nightShift) { w.acknowledge(w.newest()) }, 0, 1},
		"resolved by a person": {func(w *nightShift) {
			w.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/resolve/", w.newest()["id"]), object{}).want(200)
		}, 0, 0},
		"entered in error": {func(w *nightShift) {
			w.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", w.newest()["observation_id"]), object{"reason": "The spouse's."}).want(200)
		}, 0, 0},
		"typed by the patient": {func(w *nightShift) {
			portal := w.portal()
			for i := range 2 {
				w.requestAs(portal, "POST", "/ingestion/blood-pressure/", object{
					"patient_id": w.patient, "systolic": 121 + i, "diastolic": 70, "measured_at": w.now.Add(time.Duration(i) * time.Second).Format(time.RFC3339),
				}).want(201)
			}
		}, 0, 1},
		"snoozed": {func(w *nightShift) { w.snooze(4*time.Hour, true).want(201) }, 0, 0},
		"archived": {func(w *nightShift) {
			w.request(authz.Admin, "POST", "/patients/"+w.patient+"/archive/", object{"reason": "Moved away.", "confirm": true}).want(200)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, confirm)
			first := w.cuff(182, 118, 0)
			w.wantStat("the first", 0)
			w.now = w.now.Add(3 * time.Minute)
			test.then(w)
			w.wantStat("the next readings", test.atOnce)
			w.now = w.now.Add(confirm - 3*time.Minute - time.Second)
			w.minute()
			w.wantStat("just before the end", test.atOnce)
			w.now = w.now.Add(time.Hour) // the process was killed, and another runs the next sweep
			w.minute()
			w.wantStat("at the end", test.end)
			if test.end == 1 {
				escalation := w.escalationsOf()[0]
				alert := w.request(authz.Nurse, "GET", fmt.Sprintf("/alerts/%v/", first["id"]), nil).want(200)
				alert.wantAt(object{"escalation_id": escalation["id"], "held_until": nil})
				if got := w.pushed(w.people[authz.ClinicalManager], "escalations"); got != 1 {
					t.Errorf("%d pushes about the escalation", got)
				}
			}
			before := vigiltest.RowCounts(t, w.app)
			w.minute()
			if added := vigiltest.RowsAdded(t, w.app, before); len(added) > 0 {
				t.Errorf("the next sweep adds %v", added)
			}
		})
	}
}

// These are never held: other kinds, a reading with another critical value, a low pressure, and a critical value within
// the last day.
func TestNeverHeld(t *testing.T) {
	post := func(kind string, values object) func(w *nightShift) {
		return func(w *nightShift) {
			body := object{"patient_id": w.patient, "measured_at": w.now.Format(time.RFC3339)}
			for name, value := range values {
				body[name] = value
			}
			w.request(authz.Nurse, "POST", "/ingestion/"+kind+"/", body).want(201)
		}
	}
	for name, test := range map[string]struct {
		confirm time.Duration
		send    func(w *nightShift)
		stat    int
	}{
		"the switch is off":               {0, func(w *nightShift) { w.cuff(182, 118, 0) }, 1},
		"a severe pressure is held":       {confirm, func(w *nightShift) { w.cuff(182, 118, 70) }, 0},
		"a typed severe pressure is held": {confirm, post("blood-pressure", object{"systolic": 182, "diastolic": 118}), 0},
		"a severe diastolic is held":      {confirm, func(w *nightShift) { w.cuff(160, 121, 0) }, 0},
		"with a critical pulse":           {confirm, func(w *nightShift) { w.cuff(182, 118, 135) }, 1},
		"a critical pulse":                {confirm, func(w *nightShift) { w.cuff(120, 80, 135) }, 1},
		"a low pressure":                  {confirm, func(w *nightShift) { w.cuff(75, 50, 0) }, 1},
		"high and low":                    {confirm, func(w *nightShift) { w.cuff(185, 39, 0) }, 1},
		"oxygen":                          {confirm, post("pulse-oximetry", object{"spo2": 84}), 1},
		"glucose":                         {confirm, post("blood-glucose", object{"glucose_mg_dl": 350}), 1},
		"critical within a day":           {confirm, afterOne(23*time.Hour + 59*time.Minute), 1},
		"critical more than a day ago":    {confirm, afterOne(24 * time.Hour), 0},
		"retracted within a day": {confirm, func(w *nightShift) {
			w.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", w.cuff(182, 118, 0)["observation_id"]), object{"reason": "The spouse's."}).want(200)
			w.now = w.now.Add(time.Hour)
			w.cuff(182, 118, 0)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, test.confirm)
			test.send(w)
			w.wantStat("at once", test.stat)
			if held := w.newest()["held_until"]; (held != nil) != (test.stat == 0) {
				t.Errorf("held until %v", held)
			}
		})
	}
}

// afterOne sends a severe pressure, closes its escalation, and sends the next after the given time.
func afterOne(later time.Duration) func(w *nightShift) {
	return func(w *nightShift) {
		w.cuff(182, 118, 0)
		w.now = w.now.Add(confirm)
		w.minute()
		w.closeEscalations()
		w.now = w.now.Add(later - confirm)
		w.cuff(183, 117, 0)
	}
}

// The prompt on the patient's phone contains no PHI and expires with the hold.
func TestMeasurePromptContainsNoPHI(t *testing.T) {
	w := newNightShift(t, confirm)
	portal := w.portal()
	w.registerPhone(portal)
	w.cuff(182, 118, 0)
	if got := w.pushed(portal, "reminders"); got != 1 {
		t.Fatalf("%d pushes", got)
	}
	var body string
	err := w.app.DB().NewQuery(`SELECT d.body FROM push_deliveries d JOIN notifications n ON n.id = d.notification WHERE n.user = {:user}`).
		Bind(dbx.Params{"user": portal.Id}).Row(&body)
	if err != nil || strings.ContainsAny(body, "0123456789") || strings.Contains(body, "pressure") || strings.Contains(body, "Ada") {
		t.Errorf("the phone shows %q (%v)", body, err)
	}
	if list := w.requestAs(portal, "GET", "/notifications/", nil).results(); len(list) != 1 || list[0]["type"] != "measure_again" || list[0]["body"] != body {
		t.Errorf("the list has %v", list)
	}
}

// The first severe pressure is held from every source; a critical pulse that its vendor sends separately is not.
func TestEverySourceIsHeld(t *testing.T) {
	quarantined := func(w *nightShift) {
		id := w.postEvent(w.t, cuffEvent("BP-1", "GW-unknown", 190, w.now)).want(200).at("event_id").(string)
		w.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": w.patient}).want(201)
	}
	for name, test := range map[string]struct {
		send func(w *nightShift)
		stat int
	}{
		"webhook": {func(w *nightShift) { w.cuff(190, 80, 70) }, 0},
		"tenovi": {func(w *nightShift) {
			w.sendVendor(w.t, "tenovi", pressure("T-1", "GW-1", w.now, 190)).wantStatuses("accepted")
		}, 0},
		"a release":  {quarantined, 0},
		"the portal": {func(w *nightShift) { w.typed(w.portal(), 190) }, 0},
		"staff":      {func(w *nightShift) { w.typed(w.people[authz.MA], 190) }, 0},
		"tenovi in parts": {func(w *nightShift) {
			w.sendVendor(w.t, "tenovi", pressure("T-1", "GW-1", w.now, 190)).wantStatuses("accepted")
			w.wantStat("the pressure", 0)
			w.sendVendor(w.t, "tenovi", pulse("T-1", "GW-1", w.now, 190)).wantStatuses("accepted")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, confirm)
			test.send(w)
			w.wantStat("at once", test.stat)
			w.advance(confirm)
			w.wantStat("at the end", 1)
			for _, alert := range w.alertsOf("level", "critical") {
				if alert["escalation_id"] == nil || alert["held_until"] != nil {
					t.Errorf("an alert about %v belongs to %v and waits until %v", alert["type"], alert["escalation_id"], alert["held_until"])
				}
			}
		})
	}
}
