package routes_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// readFeed reads all changes after a cursor and returns one line per change, with the next cursor.
func (c *clinic) readFeed(role authz.Role, since, query string) (lines []string, next string) {
	c.t.Helper()
	for more := true; more; since = next {
		page := c.request(role, "GET", "/changes/?since="+url.QueryEscape(since)+query, nil).want(200).object()
		for _, one := range page["results"].([]any) {
			change := one.(object)
			lines = append(lines, fmt.Sprint(change["type"], " ", change["id"], " ", change["change"]))
		}
		next, more = page["next_cursor"].(string), page["has_more"].(bool)
	}
	return lines, next
}

// latestCursor returns the cursor after the last change.
func (c *clinic) latestCursor() string {
	c.t.Helper()
	lines, next := c.readFeed(authz.Admin, "latest", "")
	if len(lines) != 0 || next == "" {
		c.t.Fatalf("latest is %q with %v", next, lines)
	}
	return next
}

// Changes made by the API, the engines and the dashboard appear once each, in order, with the API's ids.
func TestChangeFeed(t *testing.T) {
	c := newIngestingClinic(t)
	start := c.latestCursor()
	patient := c.enroll(nil)
	reading := c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": patient, "systolic": 190, "diastolic": 125, "measured_at": "2026-01-15T13:40:00Z",
	}).want(201).object()["id"].(string)
	lines, next := c.readFeed(authz.Admin, start, "&limit=1")
	alerts := c.request(authz.Admin, "GET", "/alerts/", nil).results()
	escalations := c.request(authz.Admin, "GET", "/escalations/", nil).results()
	if len(alerts) == 0 || len(escalations) != 1 {
		t.Fatalf("%d alerts, %d escalations", len(alerts), len(escalations))
	}
	want := []string{
		"patient " + patient + " created", "observation " + reading + " created",
		fmt.Sprint("alert ", alerts[0]["id"], " created"), fmt.Sprint("escalation ", escalations[0]["id"], " created"),
	}
	for _, line := range want {
		if n := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l != line })); n != 1 {
			t.Errorf("%s is notified %d times in %v", line, n, lines)
		}
	}
	if again, same := c.readFeed(authz.Admin, next, ""); len(again) != 0 || same != next {
		t.Errorf("nothing changed, but %v is listed", again)
	}
	all, end := c.readFeed(authz.Admin, start, "&limit=1000")
	if !slices.Equal(all, lines) || end != next {
		t.Errorf("in one page %v, one by one %v", all, lines)
	}
	whole, _ := c.readFeed(authz.Admin, "", "")
	if !slices.Equal(whole[len(whole)-len(all):], all) {
		t.Errorf("from the oldest: %v", whole)
	}
	some, end := c.readFeed(authz.Admin, start, "&types=alert,%20escalation&limit=1")
	if end != next || len(some) != len(alerts)+1 {
		t.Errorf("of two types: %v", some)
	}

	c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/acknowledge/", alerts[0]["id"]), object{"notes": "called"}).want(200)
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+reading+"/entered-in-error/", object{"reason": "wrong patient"}).want(200)
	c.request(authz.Admin, "DELETE", "/patients/"+patient+"/", nil).want(204)
	after, _ := c.readFeed(authz.Admin, next, "")
	for _, line := range []string{fmt.Sprint("alert ", alerts[0]["id"], " updated"), "observation " + reading + " updated", "patient " + patient + " deleted"} {
		if !slices.Contains(after, line) {
			t.Errorf("%s is not listed: %v", line, after)
		}
	}
}

func TestChangeFeedRefusals(t *testing.T) {
	c := newClinic(t)
	c.enroll(nil)
	other := newClinic(t)
	other.enroll(nil)
	foreign := other.latestCursor()
	own := c.latestCursor()
	for since, status := range map[string]int{
		own: 200, "": 200, "latest": 200, foreign: 400, "x": 400, own + "A": 400, own[:len(own)-1]: 400, "AAAAAAAAAAAAAAAAAAAAAA": 400, strings.ToLower(own): 400,
		"__________8AAAAAAAAAAA": 400, "\x00": 400,
	} {
		got := c.request(authz.Admin, "GET", "/changes/?since="+url.QueryEscape(since), nil)
		if got.want(status); status == 400 && got.object()["code"] != "invalid_cursor" {
			t.Errorf("%q: %s", since, got.body)
		}
	}
	for query, field := range map[string]string{
		"types=weather": "types", "types=alert,weather": "types", "types=,": "types", "types=Alert": "types", "limit=0": "limit", "limit=-1": "limit", "limit=x": "limit",
	} {
		got := c.request(authz.Admin, "GET", "/changes/?"+query, nil).want(400, "validation_error").object()
		if got["field_errors"].(object)[field] == nil {
			t.Errorf("%s: %v", query, got)
		}
	}
	c.request(authz.Admin, "GET", "/changes/?limit=100000&types=", nil).want(200)
	c.wantRoles("GET", "/changes/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.DataMonitor)
}

// Each role sees the changes of the types that it may read for all patients.
func TestChangeFeedByRole(t *testing.T) {
	c := newIngestingClinic(t)
	for role, closed := range map[authz.Role][]string{
		authz.Admin: nil, authz.ClinicalManager: nil, authz.Provider: {"time_entry"}, authz.Nurse: {"claim", "time_entry"}, authz.MA: {"claim", "time_entry"},
		authz.DataMonitor: {"alert", "escalation", "snooze", "vital_config"},
	} {
		for _, noun := range []string{
			"alert", "care_team", "claim", "consent", "device", "escalation", "observation", "order", "patient", "snooze", "time_entry", "transmission", "vital_config",
		} {
			status := 200
			if slices.Contains(closed, noun) {
				status = 403
			}
			c.request(role, "GET", "/changes/?types="+noun, nil).want(status)
		}
	}
	patient := c.enroll(nil)
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": patient, "systolic": 190, "diastolic": 125, "measured_at": "2026-01-15T13:40:00Z",
	}).want(201)
	if lines, _ := c.readFeed(authz.DataMonitor, "", ""); slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "alert") || strings.HasPrefix(l, "escalation") }) ||
		!slices.Contains(lines, "patient "+patient+" created") {
		t.Errorf("a data monitor sees %v", lines)
	}
}

// A clinician who is restricted to care teams sees changes of the team's patients and changes without a patient.
func TestChangeFeedOfCareTeam(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	own, other := c.enroll(object{"mrn": "OWN"}), c.enroll(object{"mrn": "OTHER"})
	c.request(authz.Admin, "PUT", "/patients/"+own+"/care-team/", object{"members": []object{{"user_id": c.people[authz.Nurse].Number(), "role": "nurse"}}}).want(200)
	lines, _ := c.readFeed(authz.Nurse, "", "&limit=1")
	if !slices.Contains(lines, "patient "+own+" created") || !slices.Contains(lines, "care_team "+own+" updated") || slices.Contains(lines, "patient "+other+" created") {
		t.Errorf("the nurse sees %v", lines)
	}
	if lines, _ := c.readFeed(authz.MA, "", ""); slices.Contains(lines, "patient "+own+" created") {
		t.Errorf("a clinician without a team sees %v", lines)
	}
	if lines, _ := c.readFeed(authz.Admin, "", ""); !slices.Contains(lines, "patient "+other+" created") {
		t.Errorf("the administrator sees %v", lines)
	}
}

// A client with the feed's scope sees the types that it may read, by id.
func TestChangeFeedForClients(t *testing.T) {
	c := newClinic(t)
	token := c.token(c.addClient(object{"scopes": []string{"changes.read", "patients.read"}}), "")
	patient := c.enroll(nil)
	page := c.requestAsClient(token, "GET", "/changes/?types=patient,care_team", nil).want(200)
	if !strings.Contains(page.body, patient) {
		t.Errorf("the client sees %s", page.body)
	}
	if read := c.queryColumn(`SELECT actor_type || ' ' || resource_type FROM audit_log WHERE resource_type = 'Change'`); !slices.Equal(read, []string{"client Change"}) {
		t.Errorf("the audit trail has %v", read)
	}
	next := page.object()["next_cursor"].(string)
	c.requestAsClient(token, "GET", "/changes/?since="+next, nil).want(200)
	if read := c.queryColumn(`SELECT id FROM audit_log WHERE resource_type = 'Change'`); len(read) != 1 {
		t.Errorf("nothing was shown, and the trail has %d entries", len(read))
	}
	for _, noun := range []string{"claim", "alert", "device", "time_entry", "transmission"} {
		c.requestAsClient(token, "GET", "/changes/?types="+noun, nil).want(403)
	}
	for _, scopes := range [][]string{{"changes.read"}, {"changes.read", "alerts.read"}} {
		other := c.token(c.addClient(object{"scopes": scopes}), "")
		if all := c.requestAsClient(other, "GET", "/changes/", nil).want(200); strings.Contains(all.body, patient) {
			t.Errorf("%v shows %s", scopes, all.body)
		}
	}
	if all := c.requestAsClient(c.token(c.addClient(object{"scopes": []string{"changes.read", "system/Patient.rs"}}), ""), "GET", "/changes/", nil).want(200); !strings.Contains(all.body, patient) {
		t.Errorf("the scope of FHIR shows %s", all.body)
	}
}
