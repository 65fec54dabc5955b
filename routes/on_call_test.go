package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// night is a clinic that runs the escalation sweep each minute and delivers its announcements.
type night struct {
	*clinic
	dispatcher *notifications.Dispatcher
	ladder     escalations.Ladder
	start      time.Time
}

func newNight(t *testing.T, at time.Time, change ...func(*routes.Engines)) *night {
	t.Helper()
	c, dispatcher := newPushClinic(t, change...)
	c.now = at
	n := &night{clinic: c, dispatcher: dispatcher, start: at, ladder: escalations.Ladder{
		Zone: newYork,
		Overdue: map[escalations.Priority]time.Duration{
			escalations.Stat: 15 * time.Minute, escalations.Urgent: time.Hour, escalations.Routine: 24 * time.Hour,
		},
		Tiers: map[escalations.Priority]escalations.Deadlines{
			escalations.Stat:    {15 * time.Minute, 30 * time.Minute, time.Hour},
			escalations.Urgent:  {time.Hour, 4 * time.Hour, 8 * time.Hour},
			escalations.Routine: {24 * time.Hour, 48 * time.Hour, 72 * time.Hour},
		},
	}}
	for _, role := range []authz.Role{authz.Nurse, authz.Provider, authz.ClinicalManager, authz.Admin} {
		n.register(n.people[role])
	}
	return n
}

// register gives a user a device.
func (n *night) register(user *collections.User) {
	n.t.Helper()
	n.requestAs(user, "POST", "/notifications/tokens/register/", object{
		"token": user.Email(), "type": "development", "device_id": "phone", "platform": "ios",
	}).want(201)
}

// until advances the clock to the given minute.
func (n *night) until(minute int) {
	n.t.Helper()
	for end := n.start.Add(time.Duration(minute) * time.Minute); n.now.Before(end); {
		n.now = n.now.Add(time.Minute)
		if _, err := n.ladder.Sweep(n.t.Context(), n.app, n.now); err != nil {
			n.t.Fatal(err)
		}
		if _, err := n.dispatcher.SendDue(n.t.Context(), n.app); err != nil {
			n.t.Fatal(err)
		}
	}
}

// notified returns a user's notifications about escalations, oldest first: minute and type.
func (n *night) notified(user *collections.User) (list []string) {
	n.t.Helper()
	for _, item := range n.requestAs(user, "GET", "/notifications/?page_size=100", nil).results() {
		if item["escalation_id"] == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, item["created_at"].(string))
		if err != nil {
			n.t.Fatal(err)
		}
		list = append(list, fmt.Sprint(int(at.Sub(n.start).Minutes()), " ", item["type"]))
	}
	slices.Reverse(list)
	return list
}

func (n *night) wantNotified(user *collections.User, want ...string) {
	n.t.Helper()
	if got := n.notified(user); !slices.Equal(got, want) {
		n.t.Errorf("%s was notified of %q, want %q", user.Email(), got, want)
	}
}

// steps returns the steps of an escalation: minute and event.
func (n *night) steps(path string) (list []string) {
	n.t.Helper()
	history, _ := n.request(authz.Nurse, "GET", path, nil).want(200).at("history").([]any)
	for _, one := range history {
		step := one.(object)
		at, err := time.Parse(time.RFC3339, step["at"].(string))
		if err != nil {
			n.t.Fatal(err)
		}
		list = append(list, fmt.Sprint(int(at.Sub(n.start).Minutes()), " ", step["event"]))
	}
	return list
}

// alwaysOnCall is a schedule with one person on call day and night.
func alwaysOnCall(zone string, user *collections.User) object {
	var shifts []object
	for day := range 7 {
		shifts = append(shifts, object{"weekday": day, "start": "00:00", "end": "00:00", "user_id": user.Number()})
	}
	return object{"time_zone": zone, "shifts": shifts, "overrides": []object{}}
}

// clockChanges are nights on which the clocks change, and an ordinary one.
var clockChanges = map[string]time.Time{
	"America/New_York":    time.Date(2026, time.March, 8, 6, 30, 0, 0, time.UTC),
	"Europe/Berlin":       time.Date(2026, time.October, 25, 0, 30, 0, 0, time.UTC),
	"Australia/Lord_Howe": time.Date(2026, time.April, 4, 14, 30, 0, 0, time.UTC),
	"UTC":                 clock,
}

// An unanswered stat escalation notifies the care team at once, the clinician on call after 15 minutes, clinical
// managers after 30, and administrators after 60 and 120.
func TestStoryUnansweredStat(t *testing.T) {
	for zone, at := range clockChanges {
		t.Run(zone, func(t *testing.T) {
			n := newNight(t, at)
			onCall := vigiltest.User(t, n.app, authz.Nurse, vigiltest.Email("night@vigil.test"))
			n.register(onCall)
			n.request(authz.ClinicalManager, "PUT", "/on-call/", alwaysOnCall(zone, onCall)).want(200)
			patient := n.enroll(object{"primary_provider_id": n.people[authz.Provider].Number()})
			created := n.request(authz.MA, "POST", "/escalations/", object{"patient_id": patient, "priority": "stat", "reason": "SpO2 82 %."}).want(201).
				wantAt(object{"tier": 0.0, "reminded_at": nil})
			path := fmt.Sprintf("/escalations/%v/", created.at("id"))

			n.until(14)
			n.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"tier": 0.0})
			n.wantNotified(onCall)
			n.until(15)
			n.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"tier": 1.0})
			n.wantNotified(onCall, "15 escalation_overdue")
			n.until(31)
			n.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"tier": 2.0})
			n.wantNotified(n.people[authz.ClinicalManager], "15 escalation_overdue", "30 escalation_overdue")
			n.wantNotified(n.people[authz.Admin])
			n.until(130)
			n.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"tier": 3.0, "status": "open"})
			n.wantNotified(n.people[authz.Admin], "60 escalation_overdue", "120 escalation_overdue")
			n.wantNotified(onCall, "15 escalation_overdue")
			n.wantNotified(n.people[authz.Nurse])
			want := []string{"0 opened", "15 tier_1", "30 tier_2", "45 overdue", "60 tier_3", "75 overdue", "90 overdue", "105 overdue", "120 tier_3"}
			if got := n.steps(path); !slices.Equal(got, want) {
				t.Errorf("its history is %q, want %q", got, want)
			}
			for _, push := range n.request(authz.Admin, "GET", "/notifications/deliveries/?page_size=100", nil).results() {
				if text := fmt.Sprint(push["title"], push["body"]); strings.Contains(text, "Ada") || strings.Contains(text, "82") || push["status"] != "sent" {
					t.Errorf("push %q is %v", text, push["status"])
				}
			}

			n.requestAs(onCall, "PATCH", path, object{"status": "in_progress", "assigned_to": onCall.Email()}).want(200).wantAt(object{"tier": 3.0})
			n.until(190)
			if got := n.steps(path); len(got) != len(want)+2 {
				t.Errorf("the ladder continues though a clinician took it: %q", got)
			}
		})
	}
}

// A stat escalation left in progress reminds after four hours without a note, not earlier, and notifies no other tier.
func TestStoryStatLeftInProgress(t *testing.T) {
	n := newNight(t, clock)
	nurse, manager := n.people[authz.Nurse], n.people[authz.ClinicalManager]
	patient := n.enroll(object{"primary_provider_id": n.people[authz.Provider].Number()})
	path := fmt.Sprintf("/escalations/%v/", n.request(authz.MA, "POST", "/escalations/", object{"patient_id": patient, "priority": "stat", "reason": "204/124."}).want(201).at("id"))
	n.until(5)
	n.request(authz.Nurse, "PATCH", path, object{"status": "in_progress"}).want(200).wantAt(object{"assigned_to": n.people[authz.Provider].Email()})
	n.until(60)
	n.request(authz.Nurse, "PATCH", path, object{"notes": "Called, no answer."}).want(200).wantAt(object{"status": "in_progress", "reminded_at": nil})
	n.until(299)
	n.wantNotified(nurse)
	n.until(300)
	n.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"reminded_at": "2026-01-15T18:45:00Z", "tier": 0.0})
	n.wantNotified(nurse, "300 escalation_idle")
	if got := n.notified(manager); got[len(got)-1] != "300 escalation_idle" {
		t.Errorf("the clinical manager was notified of %q", got)
	}
	n.until(540)
	n.wantNotified(nurse, "300 escalation_idle", "540 escalation_idle")
	n.request(authz.Nurse, "PATCH", path, object{"status": "resolved", "notes": "Ambulance."}).want(200).wantAt(object{"status": "resolved"})
	n.until(900)
	n.wantNotified(nurse, "300 escalation_idle", "540 escalation_idle")
	want := []string{"0 opened", "5 in_progress", "60 note", "300 reminded", "540 reminded", "540 note", "540 resolved"}
	if got := n.steps(path); !slices.Equal(got, want) {
		t.Errorf("its history is %q, want %q", got, want)
	}
	history := n.request(authz.Nurse, "GET", "/escalations/", nil).results()[0]["history"].([]any)
	if note := history[2].(object); note["detail"] != "Called, no answer." || note["user"] != nurse.Email() {
		t.Errorf("the list shows %v", note)
	}
	n.request(authz.Nurse, "PATCH", path, object{"notes": "Late."}).want(400, "invalid_state")
	n.request(authz.Nurse, "PATCH", path, object{"notes": strings.Repeat("x", 4001)}).wantFields("notes")
}

// With access restricted to care teams, the clinician on call may access the escalation's patient once notified, until
// the escalation is closed.
func TestOnCallReachesThePatient(t *testing.T) {
	n := newNight(t, clock, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	onCall := vigiltest.User(t, n.app, authz.Nurse, vigiltest.Email("night@vigil.test"))
	n.request(authz.Admin, "PUT", "/on-call/", alwaysOnCall("UTC", onCall)).want(200)
	patient := n.enroll(object{"primary_provider_id": n.people[authz.Provider].Number()})
	path := fmt.Sprintf("/escalations/%v/", n.request(authz.Provider, "POST", "/escalations/", object{"patient_id": patient, "priority": "stat", "reason": "Pulse 28."}).want(201).at("id"))
	may := func(status, listed int) {
		t.Helper()
		n.requestAs(onCall, "GET", path, nil).want(status)
		n.requestAs(onCall, "GET", "/patients/"+patient+"/", nil).want(status)
		if list := n.requestAs(onCall, "GET", "/escalations/", nil).results(); len(list) != listed {
			t.Errorf("the list shows %d", len(list))
		}
		n.request(authz.Nurse, "GET", path, nil).want(403)
	}
	n.until(14)
	may(403, 0)
	n.until(15)
	may(200, 1)
	n.requestAs(onCall, "PATCH", path, object{"status": "in_progress", "assigned_to": onCall.Email(), "notes": "Calling."}).want(200)
	may(200, 1)
	n.requestAs(onCall, "PATCH", path, object{"status": "resolved"}).want(200)
	may(403, 0)
}

// Managers set the schedule, clinicians can see it, and it returns who is on call.
func TestOnCall(t *testing.T) {
	c := newClinic(t)
	nurse, provider := c.people[authz.Nurse], c.people[authz.Provider]
	c.request(authz.MA, "GET", "/on-call/", nil).want(200).wantAt(object{"time_zone": "America/New_York", "updated_at": nil, "updated_by": nil})
	c.request(authz.MA, "GET", "/on-call/now/", nil).want(200).wantAt(object{"user_id": nil, "until": nil})

	body := object{
		"time_zone": "America/New_York",
		"shifts":    []object{{"weekday": 3, "start": "08:00", "end": "20:00", "user_id": nurse.Number()}}, // Thursday; it is 08:45
		"overrides": []object{{"starts_at": "2026-01-15T14:00:00Z", "ends_at": "2026-01-15T16:00:00Z", "user_id": provider.Number()}},
	}
	set := c.request(authz.ClinicalManager, "PUT", "/on-call/", body).want(200).
		wantAt(object{"time_zone": "America/New_York", "updated_at": "2026-01-15T13:45:00Z", "updated_by": c.people[authz.ClinicalManager].Email()})
	again := c.request(authz.Nurse, "GET", "/on-call/", nil).want(200)
	for _, field := range []string{"shifts", "overrides", "people", "time_zone"} {
		if fmt.Sprint(again.at(field)) != fmt.Sprint(set.at(field)) {
			t.Errorf("%s is %v, then %v", field, set.at(field), again.at(field))
		}
	}
	shift, override := again.at("shifts").([]any)[0].(object), again.at("overrides").([]any)[0].(object)
	if shift["weekday"] != 3.0 || shift["start"] != "08:00" || shift["end"] != "20:00" || shift["user_id"] != float64(nurse.Number()) ||
		override["starts_at"] != "2026-01-15T14:00:00Z" || override["ends_at"] != "2026-01-15T16:00:00Z" || override["user_id"] != float64(provider.Number()) {
		t.Errorf("the rota has %v and %v", shift, override)
	}
	now := func(user any, until string) {
		t.Helper()
		c.request(authz.Provider, "GET", "/on-call/now/", nil).want(200).wantAt(object{"user_id": user, "until": until})
	}
	now(float64(nurse.Number()), "2026-01-15T14:00:00Z")
	c.now = c.now.Add(15 * time.Minute)
	now(float64(provider.Number()), "2026-01-15T16:00:00Z")
	c.request(authz.Admin, "POST", fmt.Sprintf("/users/%d/deactivate/", provider.Number()), nil).want(200)
	c.request(authz.Nurse, "GET", "/on-call/now/", nil).want(200).wantAt(object{"user_id": float64(nurse.Number()), "until": "2026-01-16T01:00:00Z"})
	c.now = time.Date(2026, time.January, 16, 1, 0, 0, 0, time.UTC)
	c.request(authz.Nurse, "GET", "/on-call/now/", nil).want(200).wantAt(object{"user_id": nil, "until": "2026-01-22T13:00:00Z"})

	// Handing over: an override from now to the end of the shift, beside the existing ones.
	c.now = time.Date(2026, time.January, 22, 18, 0, 0, 0, time.UTC)
	body["overrides"] = append(body["overrides"].([]object), object{
		"starts_at": "2026-01-22T13:00:00-05:00", "ends_at": "2026-01-23T01:00:00Z", "user_id": c.people[authz.ClinicalManager].Number(),
	})
	c.request(authz.ClinicalManager, "PUT", "/on-call/", body).want(200)
	c.request(authz.Nurse, "GET", "/on-call/now/", nil).want(200).wantAt(object{"user_id": float64(c.people[authz.ClinicalManager].Number()), "until": "2026-01-23T01:00:00Z"})

	c.request(authz.Admin, "PUT", "/on-call/", object{"time_zone": "Mars", "shifts": []object{{"weekday": 9, "start": "8", "end": "20:00"}}}).
		wantFields("time_zone", "shifts.0.weekday", "shifts.0.start", "shifts.0.user_id")
	c.request(authz.Admin, "PUT", "/on-call/", object{"time_zone": "UTC", "shifts": []object{
		{"weekday": 0, "start": "08:00", "end": "20:00", "user_id": c.people[authz.MA].Number()}, {"weekday": 0, "start": "08:00", "end": "20:00", "user_id": 999},
	}}).wantFields("shifts.0.user_id", "shifts.1.user_id")
	staff := []authz.Role{authz.Admin, authz.ClinicalManager, authz.Nurse, authz.MA}
	c.people[authz.Provider] = vigiltest.User(t, c.app, authz.Provider)
	staff = append(staff, authz.Provider)
	c.wantRoles("GET", "/on-call/", nil, staff...)
	c.wantRoles("GET", "/on-call/now/", nil, staff...)
	c.wantRoles("PUT", "/on-call/", object{"time_zone": "UTC"}, authz.Admin, authz.ClinicalManager)
}
