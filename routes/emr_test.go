package routes_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/routes"
)

const browserAccept = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestEMRNotConfigured(t *testing.T) {
	c := newClinic(t)
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/emr/auth/start/", nil},
		{"POST", "/emr/test/jwt/", nil},
		{"POST", "/emr/test/connection/", nil},
		{"GET", "/emr/patients/?name=a", nil},
		{"POST", "/patients/import_selected_from_emr/", object{"patient_ids": []string{"1"}}},
	} {
		c.request(authz.Admin, call.method, call.path, call.body).want(400, "emr_not_configured")
	}
	status := c.request(authz.Admin, "GET", "/emr/auth/status/", nil).want(200).wantAt(object{
		"jwt_configured": false, "jwt_last_success": nil, "oauth2_configured": false, "oauth2_token_expires": nil, "fhir_base_url": nil,
	})
	if scopes := status.at("scopes").([]any); len(scopes) != 0 {
		t.Errorf("scopes %v", scopes)
	}
}

func TestEMRSignInOfAPerson(t *testing.T) {
	c := newEMRClinic(t, nil)
	back := c.approve()
	done := c.requestCallback(back, browserAccept)
	var body object
	if err := json.Unmarshal(done.Body.Bytes(), &body); err != nil || done.Code != 200 || body["status"] != "connected" ||
		body["connected_by"] != c.people[authz.Admin].Email() || body["expires_at"] != "2026-01-15T14:45:00Z" {
		t.Fatalf("%d %s", done.Code, done.Body)
	}
	if again := c.requestCallback(back, ""); again.Code != 400 || !strings.Contains(again.Body.String(), "invalid_oauth_state") {
		t.Errorf("the state worked twice: %d %s", again.Code, again.Body)
	}
	tokens, _ := c.client.Connection()
	c.request(authz.ClinicalManager, "GET", "/emr/auth/status/", nil).want(200).wantAt(object{
		"jwt_configured": true, "oauth2_configured": true, "oauth2_token_expires": "2026-01-15T14:45:00Z", "oauth2_refresh_expires": "2026-01-22T13:45:00Z",
	})
	for _, secret := range []string{tokens.Access.Reveal(), tokens.Refresh.Reveal()} {
		var kept int
		if err := c.app.DB().NewQuery("SELECT COUNT(*) FROM emr_tokens WHERE access_token = {:s} OR refresh_token = {:s}").
			Bind(map[string]any{"s": secret}).Row(&kept); err != nil || kept != 0 || strings.Contains(done.Body.String(), secret) {
			t.Errorf("a token is in the clear: %d %v", kept, err)
		}
	}
	kept, err := c.vault().Load(emr.InteractiveFlow)
	if err != nil || kept.Access != tokens.Access || kept.Refresh != tokens.Refresh || !kept.RefreshExpiresAt.Equal(tokens.RefreshExpiresAt) {
		t.Errorf("stored tokens differ: %v", err)
	}
	var events []string
	if err := c.app.DB().Select("event").From(collections.AuditLog).Where(nil).OrderBy("id").Column(&events); err != nil {
		t.Fatal(err)
	}
	if trail := strings.Join(events, " "); !strings.Contains(trail, "emr.auth emr.token") {
		t.Errorf("audit trail: %s", trail)
	}
}

func TestEMRSignInRefusals(t *testing.T) {
	c := newEMRClinic(t, nil)
	for name, test := range map[string]struct {
		back func() url.Values
		code string
	}{
		"no state":      {func() url.Values { return url.Values{"code": {"x"}} }, "invalid_oauth_state"},
		"unknown state": {func() url.Values { return url.Values{"state": {"made-up"}, "code": {"x"}} }, "invalid_oauth_state"},
		"late": {func() url.Values {
			back := c.approve()
			c.now = c.now.Add(10 * time.Minute)
			return back
		}, "invalid_oauth_state"},
		"denied": {func() url.Values {
			return url.Values{"state": c.approve()["state"], "error": {"access_denied"}, "error_description": {"<script>"}}
		}, "emr_authorization_denied"},
		"no code": {func() url.Values { return url.Values{"state": c.approve()["state"]} }, "emr_authorization_denied"},
		"wrong code": {func() url.Values {
			return url.Values{"state": c.approve()["state"], "code": {"of-nobody"}}
		}, "emr_token_exchange_failed"},
		"EMR down": {func() url.Values {
			back := c.approve()
			c.emr.Fail(sandbox.Fault{Match: "/oauth/token", Times: 1, Status: 503})
			return back
		}, "emr_token_exchange_failed"},
	} {
		rec := c.requestCallback(test.back(), "")
		var body object
		_ = json.Unmarshal(rec.Body.Bytes(), &body)
		if body["code"] != test.code || (rec.Code == 502) != (test.code == "emr_token_exchange_failed") || strings.Contains(rec.Body.String(), "script") {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	back := c.approve()
	user := c.people[authz.Admin]
	user.Set("is_active", false)
	if err := c.app.Save(user); err != nil {
		t.Fatal(err)
	}
	if rec := c.requestCallback(back, ""); rec.Code != 400 {
		t.Errorf("connected by a deactivated user: %d", rec.Code)
	}
	if tokens, _ := c.client.Connection(); tokens.Access != "" {
		t.Error("connected all the same")
	}
}

func TestEMRSignInReturnsTheBrowser(t *testing.T) {
	c := newEMRClinic(t, nil, func(e *routes.Engines) { e.EMR.ReturnURL = "https://vigil.example.org/settings?tab=emr" })
	rec := c.requestCallback(c.approve(), browserAccept)
	if got := rec.Header().Get("Location"); rec.Code != 302 || got != "https://vigil.example.org/settings?emr=connected&tab=emr" {
		t.Errorf("%d to %s", rec.Code, got)
	}
	rec = c.requestCallback(url.Values{}, "text/html")
	if got := rec.Header().Get("Location"); rec.Code != 302 || got != "https://vigil.example.org/settings?code=invalid_oauth_state&emr=error&tab=emr" {
		t.Errorf("%d to %s", rec.Code, got)
	}
	if rec = c.requestCallback(url.Values{}, "application/json"); rec.Code != 400 {
		t.Errorf("a program is answered %d", rec.Code)
	}
}

func TestEMRTests(t *testing.T) {
	c := newEMRClinic(t, nil)
	c.request(authz.Admin, "POST", "/emr/test/jwt/", nil).want(200).wantAt(object{
		"status": "success", "token_type": "bearer", "expires_in": 3600.0, "scope": "system/Patient.read system/Observation.write system/*.write",
	})
	c.request(authz.Admin, "POST", "/emr/test/connection/", nil).want(200).wantAt(object{
		"status": "success", "fhir_server": "EMR sandbox", "fhir_version": "4.0.1",
	})
	for _, which := range []string{"jwt", "connection"} {
		missing := c.request(authz.Admin, "POST", "/emr/test/"+which+"/", nil).want(200).at("missing_scopes")
		if got := fmt.Sprint(missing); got != "[map[does:look_up scope:system/Observation.read scope_v2:system/Observation.rs]]" {
			t.Errorf("%s: missing %s", which, got)
		}
	}
	c.request(authz.Admin, "GET", "/emr/auth/status/", nil).want(200).wantAt(object{"jwt_last_success": "2026-01-15T13:45:00Z"})
	for name, test := range map[string]struct {
		fault  sandbox.Fault
		path   string
		status int
		code   string
		values object
	}{
		"refused sign-in": {sandbox.Fault{Match: "/oauth", Status: 401}, "jwt", 502, "emr_error", object{"upstream_status": 401.0, "error": "invalid_request", "error_description": "fault on demand"}},
		"sign-in down":    {sandbox.Fault{Match: "/oauth", Status: 503}, "jwt", 502, "emr_error", object{"upstream_status": 503.0}},
		"cut connection":  {sandbox.Fault{Match: "/oauth", Drop: sandbox.DropBefore}, "jwt", 502, "emr_unavailable", object{"upstream_status": nil}},
		"HTML":            {sandbox.Fault{Match: "/metadata", Answer: sandbox.AnswerHTML}, "connection", 502, "emr_error", object{"upstream_status": 200.0}},
		"redirect":        {sandbox.Fault{Match: "/metadata", Answer: sandbox.AnswerRedirect}, "connection", 502, "emr_error", object{"upstream_status": 307.0}},
		"throttled":       {sandbox.Fault{Match: "/metadata", Status: 429, RetryAfter: 1}, "connection", 502, "emr_error", object{"upstream_status": 429.0}},
	} {
		t.Run(name, func(t *testing.T) {
			c.emr.Fail(test.fault)
			defer c.emr.ClearFaults()
			c.request(authz.Admin, "POST", "/emr/test/"+test.path+"/", nil).want(test.status, test.code).wantAt(test.values)
		})
		if test.fault.RetryAfter > 0 {
			c.now = c.now.Add(time.Minute) // the pause is over
		}
	}
	if c.emr.Stats().Strays != 0 {
		t.Error("a redirect was followed")
	}
}

// An EMR that accepts a request and never answers is reported as too slow, and an import of a hundred patients stops
// instead of waiting for each.
func TestSlowEMR(t *testing.T) {
	crowd, ids := aHundred()
	c := newImpatientEMRClinic(t, crowd)
	c.emr.Fail(sandbox.Fault{Match: "/metadata", DelayMS: 60_000})
	c.request(authz.Admin, "POST", "/emr/test/connection/", nil).want(504, "emr_timeout").wantAt(object{"upstream_status": nil})
	c.emr.Fail(sandbox.Fault{Match: "/Patient/", Drop: sandbox.DropHang})
	before := c.emr.Stats().Faulted
	c.request(authz.Admin, "POST", importPath, object{"emr_patient_ids": ids}).want(504, "emr_timeout")
	if requests := c.emr.Stats().Faulted - before; requests > 3 {
		t.Errorf("%d requests to an EMR that does not answer", requests)
	}
	c.request(authz.Admin, "GET", "/patients/", nil).want(200).wantAt(object{"count": 0.0})
}

func TestEMRSearch(t *testing.T) {
	c := newEMRClinic(t, nil)
	c.enroll(object{"external_id": "Patient/pat-1001"})
	found := c.request(authz.MA, "GET", "/emr/patients/"+query("name", "quint"), nil).want(200).object()
	if found["count"] != 1.0 {
		t.Fatalf("%v", found)
	}
	if got := found["patients"].([]any)[0].(object); got["emr_id"] != "Patient/pat-1001" || got["already_imported"] != true || got["mrn"] != "E1001" || got["date_of_birth"] != "1951-03-14" {
		t.Errorf("%v", got)
	}
	for path, count := range map[string]float64{
		"": 12, query("_count", "5"): 5, query("birthdate", "1958-01-20"): 1, query("identifier", "urn:oid:2.16.840.1.113883.19.5|E1003"): 1,
		query("identifier", "nobody"): 0,
	} {
		if got := c.request(authz.Admin, "GET", "/emr/patients/"+path, nil).want(200).object()["count"]; got != count {
			t.Errorf("%s: %v, want %v", path, got, count)
		}
	}
	c.request(authz.Admin, "GET", "/emr/patients/"+query("_count", "0"), nil).wantFields("_count")
	c.request(authz.Admin, "GET", "/emr/patients/"+query("_count", "101", "birthdate", "1958"), nil).wantFields("_count", "birthdate")
	c.emr.Fail(sandbox.Fault{Match: "/Patient", Times: 1, Status: 403})
	c.request(authz.Admin, "GET", "/emr/patients/"+query("name", "Quintanar"), nil).want(502, "emr_error").wantAt(object{"upstream_status": 403.0})
	c.wantRoles("GET", "/emr/patients/"+query("name", "x"), nil, authz.Admin, authz.ClinicalManager, authz.MA)
	var rows []string
	if err := c.app.DB().NewQuery("SELECT changes FROM audit_log WHERE event = 'emr.search'").Column(&rows); err != nil || len(rows) < 6 || strings.Contains(rows[0], "quint") {
		t.Errorf("%d searches on record, the first %.40s, %v", len(rows), rows, err)
	}
}

func TestEMRSearchTermCanBeRequired(t *testing.T) {
	c := newEMRClinic(t, nil, func(e *routes.Engines) { e.EMR.RequireSearchTerm = true })
	c.request(authz.Admin, "GET", "/emr/patients/", nil).wantFields("non_field_errors")
	c.request(authz.Admin, "GET", "/emr/patients/"+query("name", "quint"), nil).want(200)
}

func TestEMRConnectionEndIsAnnounced(t *testing.T) {
	c := newEMRClinic(t, nil)
	announced := func() (n int) {
		ending, err := emr.WarnBeforeExpiry(c.app, c.client, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.app.DB().NewQuery("SELECT COUNT(*) FROM announcements").Row(&n); err != nil || ending != (n > 0) {
			t.Fatalf("%d, ending %v, %v", n, ending, err)
		}
		return n
	}
	announced()
	c.requestCallback(c.approve(), "")
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{6*24*time.Hour - time.Second, 0}, {time.Second, 1}, {time.Hour, 1}} {
		c.now = c.now.Add(step.after)
		if got := announced(); got != step.want {
			t.Errorf("at %v: %d", c.now, got)
		}
	}
}
