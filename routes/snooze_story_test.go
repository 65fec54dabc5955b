package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// snoozeNights are times around clock changes, and an ordinary one: durations do not depend on the wall clock.
var snoozeNights = map[string]time.Time{
	"a winter's day":       clock,
	"spring in New York":   time.Date(2026, time.March, 8, 5, 30, 0, 0, time.UTC),
	"autumn in New York":   time.Date(2026, time.November, 1, 4, 30, 0, 0, time.UTC),
	"spring on Lord Howe":  time.Date(2026, time.October, 3, 14, 30, 0, 0, time.UTC),
	"autumn on Lord Howe":  time.Date(2026, time.April, 4, 14, 0, 0, 0, time.UTC),
	"a year's last moment": time.Date(2026, time.December, 31, 23, 30, 0, 0, time.UTC),
}

// 232/130 under a snooze that covers critical alerts alerts and escalates; a value like the known one is suppressed
// until the end, and alerts then.
func TestStoryWorseThanSnoozed(t *testing.T) {
	for name, at := range snoozeNights {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.now = at
			w.want("the first", w.cuff(188, 110, 0), object{"level": "critical", "snoozed": false})
			w.wantPushed("the first", 1, 1)
			w.wantStat("the first", 1)
			w.closeEscalations()
			w.snooze(4*time.Hour, true).want(201)

			w.now = w.now.Add(5 * time.Minute)
			known := w.cuff(190, 112, 0)
			w.want("known", known, object{"level": "critical", "snoozed": true, "escalation_id": nil})
			w.now = w.now.Add(5 * time.Minute)
			w.want("nearly a tenth worse", w.cuff(199, 110, 0), object{"snoozed": true})
			w.now = w.now.Add(time.Second)
			w.want("a warning", w.cuff(160, 91, 0), object{"level": "warning", "snoozed": true})
			w.wantPushed("known", 0, 0)
			w.wantStat("known", 0)

			w.now = w.now.Add(5 * time.Minute)
			worse := w.cuff(232, 130, 0)
			w.want("worse", worse, object{"level": "critical", "snoozed": false, "status": "active"})
			w.wantPushed("worse, a quarter of an hour after the first", 1, 1)
			w.wantStat("worse", 1)
			if escalation := w.escalationsOf()[0]; worse["escalation_id"] != escalation["id"] || escalation["alert_id"] != worse["id"] {
				t.Errorf("the escalation is about %v", escalation)
			}
			w.now = w.now.Add(time.Minute)
			w.want("known again", w.cuff(191, 111, 0), object{"snoozed": true, "escalation_id": worse["escalation_id"]})
			w.wantPushed("known again", 0, 0)
			w.closeEscalations()

			w.advance(4*time.Hour - 17*time.Minute) // one minute before the end
			w.wantPushed("before the end", 0, 0)
			w.advance(2 * time.Minute)
			w.wantPushed("at the end", 1, 1)
			w.wantStat("at the end", 1)
			if again := w.alertsOf()[0]; again["escalation_id"] == nil || again["snoozed"] != true {
				t.Errorf("the latest is %v", again)
			}
			w.advance(2 * time.Hour)
			w.wantPushed("notified once", 0, 0)
		})
	}
}

// A value that breaks through also notifies those assigned to the escalation, even if they were notified a moment ago.
func TestWorseThanSnoozedRenewsTheEscalation(t *testing.T) {
	w := newNightShift(t, 0)
	w.cuff(188, 110, 0)
	w.snooze(4*time.Hour, true).want(201)
	w.wantPushed("the first", 1, 1)
	w.now = w.now.Add(10 * time.Minute)
	w.want("known", w.cuff(189, 110, 0), object{"snoozed": true})
	w.wantPushed("known", 0, 0)
	w.now = w.now.Add(time.Minute)
	worse := w.cuff(232, 130, 0)
	w.wantPushed("worse", 1, 1)
	w.wantStat("worse", 1)
	end := fmt.Sprintf("/patients/%s/snoozes/1/end/", w.patient)
	w.now = w.now.Add(time.Minute)
	w.request(authz.Nurse, "POST", end, nil).want(200)
	w.wantPushed("at the end", 1, 1)
	var notified int
	trail, _ := w.request(authz.Nurse, "GET", fmt.Sprintf("/alerts/%v/", worse["id"]), nil).want(200).at("audit_trail").([]any)
	for _, step := range trail {
		if step.(object)["action"] == "notified" {
			notified++
		}
	}
	if notified != 2 {
		t.Errorf("the trail has %v", trail)
	}
}

// A breakthrough depends on the baseline when the snooze began: parameter, direction, and a tenth of the distance to the
// end of the range.
func TestSnoozeBreakthrough(t *testing.T) {
	type pressure struct{ systolic, diastolic, pulse int }
	for name, test := range map[string]struct {
		known  []pressure
		next   pressure
		breaks bool
	}{
		"the same":                            {[]pressure{{188, 110, 0}}, pressure{188, 110, 0}, false},
		"a tenth worse":                       {[]pressure{{188, 110, 0}}, pressure{200, 110, 0}, true},
		"just less":                           {[]pressure{{188, 110, 0}}, pressure{199, 110, 0}, false},
		"the other parameter":                 {[]pressure{{188, 110, 0}}, pressure{188, 120, 0}, true},
		"both known":                          {[]pressure{{204, 124, 0}}, pressure{215, 131, 0}, false},
		"the second of both is worse":         {[]pressure{{204, 124, 0}}, pressure{190, 132, 0}, true},
		"known of two readings":               {[]pressure{{210, 100, 0}, {170, 125, 0}}, pressure{215, 130, 0}, false},
		"the worst of two counts":             {[]pressure{{210, 100, 0}, {185, 100, 0}}, pressure{221, 100, 0}, false},
		"a tenth worse than the worst":        {[]pressure{{210, 100, 0}, {185, 100, 0}}, pressure{222, 100, 0}, true},
		"the other direction":                 {[]pressure{{188, 110, 0}}, pressure{78, 50, 0}, true},
		"low, and a tenth lower":              {[]pressure{{78, 50, 0}}, pressure{76, 50, 0}, true},
		"low, and less than a tenth lower":    {[]pressure{{78, 50, 0}}, pressure{77, 50, 0}, false},
		"only a warning known, a tenth worse": {[]pressure{{172, 85, 0}}, pressure{184, 85, 0}, true},
		"only a warning known":                {[]pressure{{172, 85, 0}}, pressure{183, 85, 0}, false},
		"nothing known, near the bound":       {nil, pressure{191, 110, 0}, false},
		"nothing known, a tenth beyond":       {nil, pressure{192, 110, 0}, true},
		"another kind is not snoozed":         {[]pressure{{188, 110, 0}}, pressure{120, 70, 135}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			for _, p := range test.known {
				w.cuff(p.systolic, p.diastolic, p.pulse)
				w.now = w.now.Add(time.Minute)
			}
			w.closeEscalations()
			w.snooze(4*time.Hour, true).want(201)
			w.pushed(w.people[authz.Nurse], notifications.Alerts)
			w.pushed(w.people[authz.ClinicalManager], notifications.Escalations)
			w.now = w.now.Add(time.Minute)
			w.want("the next", w.cuff(test.next.systolic, test.next.diastolic, test.next.pulse), object{"level": "critical", "snoozed": !test.breaks})
			n := 0
			if test.breaks {
				n = 1
			}
			w.wantStat("the next", n)
			w.wantPushed("the next", n, n)
		})
	}
}

// Alerts acknowledged yesterday or left for a week are not part of a snooze's baseline.
func TestSnoozeBaseline(t *testing.T) {
	for name, test := range map[string]struct {
		age          time.Duration
		acknowledged bool
		breaks       bool
	}{
		"acknowledged an hour ago":   {time.Hour, true, false},
		"acknowledged two days ago":  {48 * time.Hour, true, true},
		"two days on the list":       {48 * time.Hour, false, false},
		"unanswered for eight days":  {192 * time.Hour, false, true},
		"resolved long ago, by both": {1000 * time.Hour, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			first := w.cuff(230, 100, 0)
			w.closeEscalations()
			if test.acknowledged {
				w.acknowledge(first)
			}
			w.now = w.now.Add(test.age)
			w.snooze(4*time.Hour, true).want(201)
			w.want("worse than the bound", w.cuff(220, 100, 0), object{"snoozed": !test.breaks})
		})
	}
}

// When a snooze ends, automatically or by a user, findings that still hold alert and escalate; others do not.
func TestSnoozeEnd(t *testing.T) {
	for name, test := range map[string]struct {
		critical bool // the snooze covers critical alerts
		during   func(w *nightShift)
		alerted  int
		stat     int
	}{
		"a critical alert stands": {true, func(w *nightShift) { w.cuff(190, 110, 0) }, 1, 1},
		"no second reading":       {true, func(*nightShift) {}, 0, 0},
		"it is over": {true, func(w *nightShift) {
			w.cuff(190, 110, 0)
			for range 2 {
				w.now = w.now.Add(time.Minute)
				w.cuff(120, 70, 0)
			}
		}, 0, 0},
		"one normal reading does not resolve a critical one": {true, func(w *nightShift) {
			w.cuff(190, 110, 0)
			w.now = w.now.Add(time.Minute)
			w.cuff(120, 70, 0)
		}, 1, 1},
		"acknowledged, and still critical": {true, func(w *nightShift) { w.acknowledge(w.cuff(190, 110, 0)) }, 1, 0},
		"resolved by a person": {true, func(w *nightShift) {
			w.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/resolve/", w.cuff(190, 110, 0)["id"]), object{}).want(200)
		}, 0, 0},
		"a warning stands":                {false, func(w *nightShift) { w.cuff(150, 80, 0) }, 1, 0},
		"a warning that was acknowledged": {false, func(w *nightShift) { w.acknowledge(w.cuff(150, 80, 0)) }, 0, 0},
		"the patient is archived": {true, func(w *nightShift) {
			w.cuff(190, 110, 0)
			w.request(authz.Admin, "POST", "/patients/"+w.patient+"/archive/", object{"reason": "Moved away.", "confirm": true}).want(200)
		}, 0, 0},
	} {
		for _, byPerson := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, by a person: %t", name, byPerson), func(t *testing.T) {
				w := newNightShift(t, 0)
				length := time.Hour
				snooze := w.snooze(length, test.critical).want(201)
				w.now = w.now.Add(time.Minute)
				test.during(w)
				w.wantPushed("during", 0, 0)
				w.minute()
				w.wantPushed("during", 0, 0)
				if byPerson {
					end := fmt.Sprintf("/patients/%s/snoozes/%v/end/", w.patient, snooze.at("id"))
					w.request(authz.Nurse, "POST", end, nil).want(200).wantAt(object{"in_force": false})
				} else {
					w.now = w.now.Add(length) // the service was down for a while
				}
				w.minute()
				w.minute()
				w.wantPushed("at the end", test.alerted, test.stat)
				w.wantStat("at the end", test.stat)
				w.now = w.now.Add(time.Hour)
				w.minute()
				w.wantPushed("later", 0, 0)
			})
		}
	}
}

// A late reading opens no escalation at the end of a snooze either, nor joins that of another alert; the care team is
// notified.
func TestSnoozeEndWithLateReadings(t *testing.T) {
	for name, test := range map[string]struct {
		during func(w *nightShift)
		stat   int
		joined []string
	}{
		"a late one alone": {func(w *nightShift) { w.cuffAt(w.now.Add(-80*time.Hour), 190, 122, 0) }, 0, nil},
		"two late ones": {func(w *nightShift) {
			w.cuffAt(w.now.Add(-80*time.Hour), 190, 122, 0)
			w.cuffAt(w.now.Add(-70*time.Hour), 185, 100, 0)
		}, 0, nil},
		"beside one of now":   {func(w *nightShift) { w.cuffAt(w.now.Add(-80*time.Hour), 190, 122, 0); w.cuffAt(w.now, 185, 100, 0) }, 1, []string{"185"}},
		"a warning, and late": {func(w *nightShift) { w.cuffAt(w.now.Add(-80*time.Hour), 150, 80, 0) }, 0, nil},
		"after one that is old": {func(w *nightShift) {
			w.cuffAt(w.now.Add(-23*time.Hour), 190, 122, 0)
			w.now = w.now.Add(2 * time.Hour)
			w.cuffAt(w.now.Add(-(24*time.Hour + time.Second)), 185, 100, 0)
		}, 1, []string{"190"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			snooze := w.snooze(4*time.Hour, true).want(201)
			w.now = w.now.Add(time.Minute)
			test.during(w)
			w.wantPushed("during", 0, 0)
			w.request(authz.Nurse, "POST", fmt.Sprintf("/patients/%s/snoozes/%v/end/", w.patient, snooze.at("id")), nil).want(200)
			w.wantPushed("at the end", 1, test.stat)
			w.wantStat("at the end", test.stat)
			joined := w.queryRows(t, `SELECT CAST(value AS INTEGER) FROM alerts WHERE escalation != '' ORDER BY id`)
			wantSame(t, "joined", joined, test.joined)
		})
	}
}

// A reading that arrives after a snooze's end but before the sweep has already alerted; the sweep does not alert again.
func TestSnoozeEndAlertsOnce(t *testing.T) {
	w := newNightShift(t, 0)
	w.snooze(time.Hour, true).want(201)
	w.now = w.now.Add(30 * time.Minute)
	w.cuff(190, 110, 0)
	w.now = w.now.Add(30*time.Minute + 20*time.Second)
	w.want("after the end", w.cuff(189, 110, 0), object{"snoozed": false})
	w.wantPushed("after the end", 1, 1)
	w.minute()
	w.wantPushed("the sweep", 0, 0)
	w.wantStat("the sweep", 1)
	var ended []struct {
		By string `db:"ended_by"`
		At string `db:"ended_at"`
	}
	if err := w.app.DB().NewQuery("SELECT ended_by, ended_at FROM snoozes").All(&ended); err != nil || len(ended) != 1 || ended[0].By != "system" ||
		ended[0].At != collections.FormatInstant(clock.Add(time.Hour)) {
		t.Errorf("ended: %v (%v)", ended, err)
	}
	before := vigiltest.RowCounts(t, w.app)
	w.minute()
	if added := vigiltest.RowsAdded(t, w.app, before); len(added) > 0 {
		t.Errorf("the next sweep adds %v", added)
	}
}

// Consecutive snoozes together last no longer than one may; a notification in between ends the series.
func TestConsecutiveSnoozes(t *testing.T) {
	w := newNightShift(t, 0)
	w.cuff(190, 110, 0)
	w.snooze(3*time.Hour, true).want(201)
	w.now = w.now.Add(2 * time.Hour)
	w.snooze(2*time.Hour+time.Second, true).wantFields("ends_at")
	w.snooze(2*time.Hour, true).want(201)
	w.now = w.now.Add(time.Hour)
	w.snooze(time.Hour, true).want(201)
	w.snooze(4*time.Hour, true).wantFields("ends_at")

	// A snooze that leaves out critical alerts notifies of them, so a later one that covers them starts a new series.
	w.wantPushed("before", 1, 1)
	w.snooze(24*time.Hour, false).want(201)
	w.wantPushed("no longer snoozed", 1, 1) // the first reading's escalation is open and notified hours ago
	w.now = w.now.Add(time.Minute)
	w.snooze(4*time.Hour, true).want(201)

	// So do ending a snooze manually, and its end.
	end := fmt.Sprintf("/patients/%s/snoozes/%v/end/", w.patient, w.request(authz.Nurse, "GET", "/patients/"+w.patient+"/snoozes/?in_force=true", nil).results()[0]["id"])
	w.now = w.now.Add(3 * time.Hour)
	w.request(authz.Nurse, "POST", end, nil).want(200)
	w.wantPushed("ended", 1, 1)
	w.snooze(4*time.Hour, true).want(201)
	w.now = w.now.Add(4*time.Hour + 30*time.Second)
	w.snooze(4*time.Hour, true).want(201) // before the sweep
	w.wantPushed("run out", 1, 1)

	// Other types: 30 days.
	c := newNightShift(t, 0)
	c.snooze(20*24*time.Hour, false).want(201)
	c.now = c.now.Add(15 * 24 * time.Hour)
	c.snooze(15*24*time.Hour+time.Minute, false).wantFields("ends_at")
	c.snooze(4*time.Hour, true).want(201)
	c.snooze(15*24*time.Hour, false).want(201)
}

// A late reading between the end of a snooze and the sweep has sent no alert: findings that still hold alert and
// escalate.
func TestSnoozeEndAfterLateReading(t *testing.T) {
	for name, late := range map[string]func(w *nightShift){
		"superseded by what came since": func(w *nightShift) { w.cuffAt(w.now.Add(-80*time.Hour), 204, 124, 0) },
		"a warning":                     func(w *nightShift) { w.cuffAt(w.now.Add(-80*time.Hour), 150, 80, 0) },
		"two of them": func(w *nightShift) {
			w.cuffAt(w.now.Add(-80*time.Hour), 204, 124, 0)
			w.cuffAt(w.now.Add(-70*time.Hour), 185, 100, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.snooze(time.Hour, true).want(201)
			w.now = w.now.Add(30 * time.Minute)
			standing := w.cuff(190, 110, 0)
			w.now = w.now.Add(30*time.Minute + 20*time.Second)
			late(w)
			w.want("late", w.newest(), object{"late": true, "resolution_reason": "superseded"})
			w.wantPushed("late", 0, 0)
			w.minute()
			w.wantPushed("the sweep", 1, 1)
			w.wantStat("the sweep", 1)
			if e := w.escalationsOf()[0]; e["alert_id"] != standing["id"] {
				t.Errorf("the escalation is about alert %v, want %v", e["alert_id"], standing["id"])
			}
			w.advance(2 * time.Hour)
			w.wantPushed("once", 0, 0)
		})
	}
}

// At the end of a snooze a late reading does not notify once a newer one was measured; the app shows it. Without a newer
// one it notifies, without an escalation.
func TestLateReadingAtSnoozeEnd(t *testing.T) {
	for name, test := range map[string]struct {
		since   func(w *nightShift)
		alerted int
	}{
		"nothing since":           {func(*nightShift) {}, 1},
		"a normal one since":      {func(w *nightShift) { w.cuff(120, 70, 0) }, 0},
		"a late normal one since": {func(w *nightShift) { w.cuffAt(w.now.Add(-30*time.Hour), 120, 70, 0) }, 0},
		"a warning since":         {func(w *nightShift) { w.cuff(150, 80, 0) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNightShift(t, 0)
			w.snooze(time.Hour, true).want(201)
			w.now = w.now.Add(time.Minute)
			w.want("late", w.cuffAt(w.now.Add(-80*time.Hour), 190, 122, 0), object{"late": true, "snoozed": true, "status": "active"})
			w.now = w.now.Add(time.Minute)
			test.since(w)
			w.wantPushed("during", 0, 0)
			w.now = w.now.Add(time.Hour)
			w.minute()
			w.wantPushed("at the end", test.alerted, 0)
			w.wantStat("at the end", 0)
		})
	}
}
