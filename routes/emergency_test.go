package routes_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

const emergencyReason = "Found unconscious in the lobby"

// opened matches the writes that emergency access permits, by path. It repeats the list on purpose, so that a new row or
// a changed list of actions cannot open one unnoticed.
var opened = regexp.MustCompile(`^/api/v1/(ingestion/(blood-pressure|weight|pulse-oximetry|blood-glucose|body-temperature|batch|observations/\{id\}/(entered-in-error|confirm)|quarantine/\{id\}/(confirm|discard))|` +
	`alerts/\{id\}/(acknowledge|resolve|notes|escalate)|escalations(/\{id\})?|gateway/(webhook|tenovi|telli)|messaging/(status|inbound))/$`)

// For every write and every role, the emergency header is refused except for readings, alerts, escalations and notes;
// only the refusal is recorded.
func TestEmergencyOpensFewWrites(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	foreign := c.enroll(nil)
	closed, before := 0, vigiltest.RowCounts(t, c.app)
	for _, route := range routes.Rows() {
		if route.Method == http.MethodGet || strings.HasSuffix(route.Path, "/_search") { // _search only reads
			continue
		}
		opens := opened.MatchString(route.Path)
		path := pathParameter.ReplaceAllString(strings.Replace(route.Path, "/patients/{id}", "/patients/"+foreign, 1), "999999")
		for _, role := range authz.Roles {
			for _, value := range []string{emergencyReason, "", "short"} {
				answer := c.emergency(route.Method, path, vigiltest.Token(t, c.people[role], c.now), value)
				if opens {
					if answer.Code == 403 && authz.ReachOf(role, route.Action) != authz.None && strings.Contains(answer.Body.String(), "An emergency opens") {
						t.Errorf("%s %s is not open in an emergency: %s", route.Method, route.Path, answer.Body)
					}
					continue
				}
				closed++
				if answer.Code != 403 || code(t, answer) != "permission_denied" {
					t.Errorf("%s %s as %s with the reason %q: %d %s", route.Method, route.Path, role, value, answer.Code, answer.Body)
				}
			}
		}
		if opens {
			before = vigiltest.RowCounts(t, c.app)
			continue
		}
		added := vigiltest.RowsAdded(t, c.app, before)
		if delete(added, "audit_log"); len(added) > 0 {
			t.Errorf("%s %s wrote %v", route.Method, route.Path, added)
		}
	}
	if closed < 7*3*60 {
		t.Errorf("only %d requests were tried", closed)
	}
}

func (c *clinic) emergency(method, path, token, reason string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader("{}"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Emergency-Access", reason)
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	c.handler.ServeHTTP(answer, request)
	vigiltest.CheckResponse(c.t, method, request.URL.Path, answer.Code, answer.Header(), answer.Body.Bytes())
	return answer
}

// Emergency access is not care team membership: it opens the writes that help the patient now, and all reads.
func TestEmergencyIsNotMembership(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	foreign, own := c.enroll(nil), c.enroll(object{"mrn": "MRN-OWN"})
	team := object{"members": []object{{"user_id": c.people[authz.Provider].Number()}}}
	c.request(authz.Admin, "PUT", "/patients/"+own+"/care-team/", team).want(200)
	urgent := object{"patient_id": foreign, "priority": "stat", "reason": "No pulse"}
	for _, patient := range []string{foreign, own} {
		c.request(authz.Provider, "PUT", "/patients/"+patient+"/care-team/", team, "X-Emergency-Access", emergencyReason).want(403, "permission_denied")
	}
	c.request(authz.Provider, "GET", "/patients/"+foreign+"/", nil).want(403, "permission_denied")
	c.request(authz.Provider, "GET", "/patients/"+foreign+"/care-team/", nil, "X-Emergency-Access", emergencyReason).want(200)
	c.request(authz.Provider, "POST", "/escalations/", urgent).want(403, "permission_denied")
	c.request(authz.Provider, "POST", "/escalations/", urgent,
		"X-Emergency-Access", emergencyReason).want(201)
	if events := c.events(foreign); !slices.Contains(events, "access.emergency") {
		t.Errorf("recorded %v", events)
	}
}
