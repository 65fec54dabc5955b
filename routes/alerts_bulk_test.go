package routes_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/routes"
)

// raise stores an alert through the alert engine and returns its number.
func (c *clinic) raise(patient, kind string, level alerts.Level, value float64) int {
	c.t.Helper()
	draft := alerts.Draft{PatientID: patient, MeasuredAt: c.now, Finding: alerts.Finding{
		Type: kind, Level: level, Parameter: "systolic", Value: value, Threshold: 140, Message: "Look.",
	}}
	if _, err := alerts.Raise(c.app, draft, c.now); err != nil {
		c.t.Fatal(err)
	}
	newest := c.request(authz.Admin, "GET", "/alerts/?page_size=1", nil).rows()[0]
	return int(newest["id"].(float64))
}

// rows returns the items of a list page.
func (r reply) rows() (items []object) {
	list, _ := r.want(200).object()["results"].([]any)
	for _, item := range list {
		items = append(items, item.(object))
	}
	return items
}

// holds checks values by dotted path, also inside lists.
func (r reply) holds(values object) reply {
	r.t.Helper()
	for path, want := range values {
		var value any = r.object()
		for name := range strings.SplitSeq(path, ".") {
			switch inside := value.(type) {
			case object:
				value = inside[name]
			case []any:
				value = nil
				if i, err := strconv.Atoi(name); err == nil && i < len(inside) {
					value = inside[i]
				}
			default:
				value = nil
			}
		}
		if value != want {
			r.t.Errorf("%s: %s is %v, want %v in %s", r.what, path, value, want, r.body)
		}
	}
	return r
}

func groups(r reply) (rows []string) {
	for _, g := range r.rows() {
		rows = append(rows, fmt.Sprintf("%v %v x%v", g["level"], g["type"], g["count"]))
	}
	return rows
}

// A patient has one reading of 210/125 and then 27 warnings: the critical alert stays first, and each patient and cause
// has one row.
func TestStoryCriticalAmongWarnings(t *testing.T) {
	c := newClinic(t)
	worst, many, other := c.enroll(nil), c.enroll(nil), c.enroll(nil)
	c.request(authz.Nurse, "GET", "/alerts/groups/", nil).want(200).holds(object{"count": 0.0, "levels.critical.groups": 0.0, "counts.active": 0.0})
	first := c.raise(worst, "blood_pressure", alerts.Critical, 210)
	for i := range 27 {
		c.now = c.now.Add(time.Minute)
		patient, kind := many, "pulse_oximetry"
		if i%3 == 2 {
			patient, kind = other, "weight"
		}
		c.raise(patient, kind, alerts.Warning, 89)
	}
	newest := c.request(authz.Nurse, "GET", "/alerts/?status=active&page_size=25", nil).rows()
	if slices.ContainsFunc(newest, func(a object) bool { return a["level"] == "critical" }) {
		t.Error("the newest 25 have the critical one: the scenario proves nothing")
	}
	page := c.request(authz.Nurse, "GET", "/alerts/groups/?status=active&page_size=25", nil)
	if got, want := groups(page), []string{"critical blood_pressure x1", "warning weight x9", "warning pulse_oximetry x18"}; !slices.Equal(got, want) {
		t.Errorf("the groups are %v, not %v", got, want)
	}
	page.holds(object{
		"count": 3.0, "levels.critical.groups": 1.0, "levels.critical.alerts": 1.0, "levels.warning.groups": 2.0, "levels.warning.alerts": 27.0,
		"results.0.latest.value": 210.0, "results.0.alert_ids.0": float64(first), "results.0.critical_count": 1.0, "results.1.acknowledged_count": 0.0,
		"counts.active": 28.0, "counts.critical": 1.0, "counts.warning": 27.0, "counts.in_progress": 0.0, "counts.snoozed": 0.0,
	})
	c.request(authz.Nurse, "GET", "/alerts/groups/?level=warning&page_size=1&page=2", nil).holds(object{"count": 2.0, "levels.critical.groups": 1.0, "results.0.type": "pulse_oximetry"})
	c.request(authz.Nurse, "GET", "/alerts/groups/?type=weight", nil).holds(object{"count": 1.0, "results.0.count": 9.0})

	// A critical alert makes its group critical.
	c.raise(other, "weight", alerts.Critical, 5)
	c.request(authz.Nurse, "GET", "/alerts/groups/?status=active", nil).holds(object{
		"results.0.type": "weight", "results.0.count": 10.0, "results.0.critical_count": 1.0, "results.1.type": "blood_pressure", "levels.critical.critical_alerts": 2.0,
	})

	// An acknowledged alert ranks after unanswered ones, and the clinician who acknowledged it can list it.
	c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%d/acknowledge/", first), object{}).want(200)
	c.request(authz.Nurse, "GET", "/alerts/groups/", nil).holds(object{"results.0.type": "weight", "results.1.type": "blood_pressure", "results.1.acknowledged_count": 1.0})
	mine := "/alerts/groups/?status=acknowledged&acknowledged_by=" + c.people[authz.Nurse].Email()
	c.request(authz.Nurse, "GET", mine, nil).holds(object{
		"count": 1.0, "results.0.patient_id": worst, "counts.active": 28.0, "counts.critical": 1.0, "counts.in_progress": 1.0, "counts.mine": 1.0,
	})
	c.request(authz.Provider, "GET", mine, nil).holds(object{"counts.in_progress": 1.0, "counts.mine": 0.0})
	c.request(authz.Nurse, "GET", "/alerts/?status=acknowledged&acknowledged_by=nobody@example.org", nil).holds(object{"count": 0.0})
	c.request(authz.Nurse, "GET", "/alerts/?over=false", nil).holds(object{"count": 29.0})
	c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%d/resolve/", first), object{}).want(200)
	c.request(authz.Nurse, "GET", "/alerts/?over=false", nil).holds(object{"count": 28.0})
	c.request(authz.Nurse, "GET", "/alerts/?over=true&patient_id="+worst, nil).holds(object{"count": 1.0, "results.0.status": "resolved"})
	c.request(authz.Nurse, "GET", "/alerts/?over=perhaps", nil).want(400)
}

// Several alerts are resolved with one note; an alert that is refused does not affect the others.
func TestStorySeveralAlertsAtOnce(t *testing.T) {
	c := newClinic(t)
	one, two := c.enroll(nil), c.enroll(nil)
	critical, warning, over := c.raise(one, "blood_pressure", alerts.Critical, 190), c.raise(one, "pulse", alerts.Warning, 112), c.raise(two, "weight", alerts.Warning, 3)
	c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%d/resolve/", over), object{}).want(200)
	body := object{"alert_ids": []int{critical, warning, over, 9999, warning}, "notes": "Seen together."}

	c.request(authz.MA, "POST", "/alerts/acknowledge/", body).want(200).holds(object{
		"done": 1.0, "refused": 3.0, "results.0.code": "permission_denied", "results.1.status": "acknowledged", "results.2.code": "invalid_state", "results.3.code": "not_found",
	})
	c.request(authz.Nurse, "POST", "/alerts/acknowledge/", body).want(200).holds(object{
		"done": 2.0, "refused": 2.0, "results.0.done": true, "results.0.acknowledged_by": c.people[authz.Nurse].Email(),
		"results.1.acknowledged_by": c.people[authz.MA].Email(), "results.2.done": false,
	})
	c.request(authz.Nurse, "GET", fmt.Sprintf("/alerts/%d/", critical), nil).holds(object{
		"notes": "Seen together.", "status": "acknowledged", "audit_trail.1.action": "acknowledged", "audit_trail.1.detail": "Seen together.",
	})
	c.request(authz.MA, "POST", "/alerts/resolve/", body).want(403)
	c.request(authz.Provider, "POST", "/alerts/resolve/", body).want(200).holds(object{"done": 2.0, "results.0.status": "resolved"})

	c.request(authz.Nurse, "POST", "/alerts/acknowledge/", object{"alert_ids": []int{}}).want(400).holds(object{"field_errors.alert_ids.0": "Choose at least one alert."})
	c.request(authz.Nurse, "POST", "/alerts/acknowledge/", object{"alert_ids": "all"}).want(400)
	c.request(authz.Nurse, "POST", "/alerts/acknowledge/", object{"alert_ids": []any{critical, "7"}}).want(400)
	c.request(authz.Nurse, "POST", "/alerts/acknowledge/", object{"alert_ids": make([]int, 201)}).want(400)
	c.request(authz.DataMonitor, "POST", "/alerts/acknowledge/", body).want(403)
}

// The user who answered an alert can undo it shortly afterward; other users cannot. The audit trail has both steps.
func TestStoryUndo(t *testing.T) {
	c := newClinic(t)
	one, two := c.enroll(nil), c.enroll(nil)
	critical, warning := c.raise(one, "blood_pressure", alerts.Critical, 190), c.raise(two, "pulse", alerts.Warning, 112)
	score := func(patient string) any {
		return c.request(authz.Nurse, "GET", "/triage/patients/?patient_id="+patient, nil).rows()[0]["risk_score"]
	}
	review := func(patient string) any {
		return c.request(authz.Nurse, "GET", "/triage/patients/?patient_id="+patient, nil).rows()[0]["last_reviewed_at"]
	}
	path := func(id int) string { return fmt.Sprintf("/alerts/%d/", id) }
	both, note := object{"alert_ids": []int{critical, warning}}, object{"alert_ids": []int{critical, warning}, "notes": "Seen together."}
	c.request(authz.Nurse, "POST", path(critical)+"notes/", object{"notes": "Called in the morning."}).want(200)
	before := score(one)
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "POST", "/alerts/acknowledge/", note).want(200).holds(object{"done": 2.0})
	if score(one) == before || review(one) == nil {
		t.Fatal("acknowledging changed no order: the scenario proves nothing")
	}
	c.now = c.now.Add(9 * time.Second)
	c.request(authz.Provider, "POST", "/alerts/undo/", both).want(200).holds(object{"done": 0.0, "refused": 2.0, "results.0.code": "permission_denied"})
	c.request(authz.Nurse, "POST", "/alerts/undo/", both).want(200).holds(object{"done": 2.0, "results.0.status": "active", "results.0.acknowledged_by": nil})
	c.request(authz.Nurse, "GET", path(critical), nil).holds(object{
		"status": "active", "acknowledged": false, "acknowledged_at": nil, "notes": "Called in the morning.",
		"audit_trail.2.action": "acknowledged", "audit_trail.2.detail": "Seen together.", "audit_trail.3.action": "undone", "audit_trail.3.actor": c.people[authz.Nurse].Email(),
	})
	c.request(authz.Nurse, "GET", path(warning), nil).holds(object{"notes": nil})
	if score(one) != before || review(one) != nil || review(two) != nil {
		t.Errorf("after the undo the score is %v, not %v, and the patients count as reviewed at %v and %v", score(one), before, review(one), review(two))
	}
	c.request(authz.Nurse, "POST", "/alerts/undo/", both).want(200).holds(object{"done": 0.0, "results.0.code": "invalid_state"})

	// Undoing the resolution of an acknowledged alert restores the acknowledgment and its user.
	c.request(authz.MA, "POST", path(warning)+"acknowledge/", object{}).want(200)
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "POST", path(warning)+"resolve/", object{"notes": "Gone."}).want(200)
	c.request(authz.Nurse, "POST", "/alerts/undo/", object{"alert_ids": []int{warning}}).want(200).holds(object{
		"results.0.status": "acknowledged", "results.0.acknowledged_by": c.people[authz.MA].Email(), "results.0.resolved_at": nil,
	})
	if at := review(two); at == nil {
		t.Error("undoing the resolution removed the review of the acknowledgment")
	}
}

// An answer cannot be undone after the time limit or once another action followed from it.
func TestStoryUndoIsRefused(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	undo := func(id int) reply {
		return c.request(authz.Nurse, "POST", "/alerts/undo/", object{"alert_ids": []int{id}}).want(200)
	}
	answered := func(body object) int {
		id := c.raise(patient, "blood_pressure", alerts.Warning, 150)
		c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%d/acknowledge/", id), body).want(200)
		return id
	}
	late := answered(object{})
	c.now = c.now.Add(61 * time.Second)
	undo(late).holds(object{"done": 0.0, "results.0.code": "invalid_state", "results.0.detail": "It is too late to undo this."})

	escalated := answered(object{})
	c.request(authz.Provider, "POST", fmt.Sprintf("/alerts/%d/escalate/", escalated), object{}).want(201)
	undo(escalated).holds(object{"results.0.code": "invalid_state"})

	noted := answered(object{})
	c.request(authz.Provider, "POST", fmt.Sprintf("/alerts/%d/notes/", noted), object{"notes": "I was there."}).want(200)
	undo(noted).holds(object{"results.0.code": "invalid_state"})

	undo(answered(object{"outcome": "monitoring"})).holds(object{"results.0.code": "invalid_state"})
	undo(c.raise(patient, "blood_pressure", alerts.Warning, 150)).holds(object{"results.0.code": "invalid_state"})

	// Reading an alert does not count as a later action.
	read := answered(object{})
	c.request(authz.Provider, "GET", fmt.Sprintf("/alerts/%d/", read), nil).want(200)
	undo(read).holds(object{"done": 1.0, "results.0.status": "active"})
}

// Escalations use the practice's deadlines and report when they began to wait for an answer.
func TestEscalationsByUrgency(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) {
		e.Ladder.Tiers = map[escalations.Priority]escalations.Deadlines{escalations.Stat: {15 * time.Minute, 30 * time.Minute, time.Hour}}
	})
	patient := c.enroll(nil)
	c.request(authz.Nurse, "GET", "/escalations/deadlines/", nil).want(200).holds(object{
		"stat.on_call_seconds": 900.0, "stat.everyone_seconds": 3600.0, "note_seconds": 14400.0,
	})
	open := func(priority, reason string) string {
		made := c.request(authz.Nurse, "POST", "/escalations/", object{"patient_id": patient, "priority": priority, "reason": reason}).want(201)
		c.now = c.now.Add(time.Minute)
		return fmt.Sprintf("/escalations/%v/", made.at("id"))
	}
	taken := open("stat", "taken")
	open("urgent", "first urgent")
	open("routine", "routine")
	open("stat", "stat")
	open("urgent", "second urgent")
	closed := open("stat", "closed")
	c.request(authz.Nurse, "PATCH", closed, object{"status": "cancelled"}).want(200).holds(object{"waits_since": nil, "taken": false})
	nurse := c.people[authz.Nurse]
	c.request(authz.Nurse, "PATCH", taken, object{"status": "in_progress"}).want(200).holds(object{"taken": true, "waits_since": nil, "assigned_to": nurse.Email()})
	var reasons []string
	list := c.request(authz.Nurse, "GET", "/escalations/?active=true&ordering=urgency", nil)
	for _, e := range list.rows() {
		reasons = append(reasons, e["reason"].(string))
	}
	if want := []string{"stat", "first urgent", "second urgent", "routine", "taken"}; !slices.Equal(reasons, want) {
		t.Errorf("the order is %v, not %v", reasons, want)
	}
	list.holds(object{"count": 5.0, "results.4.assigned_name": nurse.GetString("first_name") + " " + nurse.GetString("last_name")})
	c.request(authz.Nurse, "GET", "/escalations/?active=false", nil).holds(object{"count": 1.0, "results.0.reason": "closed"})
}

// A gap in the on-call schedule is reported before an escalation reaches it.
func TestOnCallGapIsReported(t *testing.T) {
	c := newClinic(t)
	provider, nurse := c.people[authz.Provider], c.people[authz.Nurse]
	c.request(authz.Admin, "GET", "/on-call/turns/?days=2", nil).want(200).holds(object{"turns.0.user_id": nil})
	shifts := []object{}
	for day := range 7 {
		shifts = append(shifts, object{"weekday": day, "start": "08:00", "end": "18:00", "user_id": provider.Number()})
	}
	from, to := c.now.Add(30*time.Hour), c.now.Add(31*time.Hour)
	c.request(authz.Admin, "PUT", "/on-call/", object{"time_zone": "America/New_York", "shifts": shifts, "overrides": []object{
		{"starts_at": from.Format(time.RFC3339), "ends_at": to.Format(time.RFC3339), "user_id": nurse.Number()},
	}}).want(200)
	last, gaps, overrides := "", 0, 0
	for _, turn := range c.request(authz.MA, "GET", "/on-call/turns/", nil).want(200).at("turns").([]any) {
		turn := turn.(object)
		if last != "" && turn["starts_at"] != last {
			t.Errorf("a turn begins at %v, after one that ends at %v", turn["starts_at"], last)
		}
		last = turn["ends_at"].(string)
		if turn["user_id"] == nil {
			gaps++
		}
		if turn["override"] == true {
			overrides++
			if turn["email"] != nurse.Email() {
				t.Errorf("the override is %v's", turn["email"])
			}
		}
	}
	if gaps < 7 || overrides != 1 {
		t.Errorf("%d nights without anybody and %d overrides", gaps, overrides)
	}
}

// A hub reports the patients who hold its devices to roles that may see them.
func TestHubListsPatients(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(object{"first_name": "Ada", "last_name": "Byron"})
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "W-1", "patient_id": patient, "device_type": "scale"}).want(200)
	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "W-2", "device_type": "scale"}).want(201)
	if _, err := c.app.DB().Update(collections.Devices, dbx.Params{"hub_id": "H1"}, dbx.In("device_id", "W-1", "W-2")).Execute(); err != nil {
		t.Fatal(err)
	}
	c.insert(collections.Hubs, dbx.Params{"hub_id": "H1", "status": "online", "last_heartbeat_at": collections.FormatInstant(c.now)})
	c.request(authz.Nurse, "GET", "/hubs/", nil).want(200).holds(object{
		"results.0.devices.0.patient_name": "Ada Byron", "results.0.devices.1.patient_id": nil, "results.0.devices.1.patient_name": nil,
	})
}
