package emr_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/emr"
)

// chartEMR answers by path, and its token endpoint grants what is requested.
type chartEMR struct {
	*fakeEMR
	paths map[string]reply // by path and query
	grant string           // the scope of a token answer; "" grants what is requested
	deny  string           // the OAuth error for tokens that read charts
}

func (e *chartEMR) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasPrefix(req.URL.String(), baseURL) {
		answer, known := e.paths[strings.TrimPrefix(req.URL.String(), baseURL)]
		if !known {
			answer = reply{status: 404}
		}
		e.replies = map[string][]reply{req.Method: {answer}}
	} else {
		body := `{"access_token":"token","token_type":"Bearer","expires_in":3600,"scope":"` + e.grant + `"}`
		answer := reply{status: 200, header: map[string]string{"Content-Type": "application/json"}, body: body}
		if e.deny != "" {
			answer = reply{status: 400, header: map[string]string{"Content-Type": "application/json"}, body: `{"error":"` + e.deny + `"}`}
		}
		e.tokens = []reply{answer}
	}
	return e.fakeEMR.RoundTrip(req)
}

// The requested scopes are in the syntax that the EMR's configuration lists, else in that of the configured scopes.
func TestScopesOfCharts(t *testing.T) {
	const v1, v2 = "system/Condition.read", "system/Condition.rs"
	for name, test := range map[string]struct {
		configuration string
		scopes        []string
		want          string
	}{
		"nothing known":               {"", nil, v1},
		"no JSON":                     {"<html>", nil, v1},
		"configured scopes are v2":    {"", []string{"system/Observation.crus"}, v2},
		"v1 only":                     {`{"capabilities":["permission-v1"]}`, []string{"system/Observation.crus"}, v1},
		"v2 only":                     {`{"capabilities":["permission-v2"]}`, nil, v2},
		"both, configured v1":         {`{"capabilities":["permission-v1","permission-v2"]}`, nil, v1},
		"both, configured v2":         {`{"capabilities":["permission-v1","permission-v2"]}`, []string{"system/Observation.crus"}, v2},
		"listed as v2":                {`{"scopes_supported":["system/Condition.rs"]}`, nil, v2},
		"listed as v1":                {`{"scopes_supported":["system/Condition.read"]}`, []string{"system/Observation.crus"}, v1},
		"listed as both":              {`{"scopes_supported":["system/Condition.read","system/Condition.rs"]}`, nil, v1},
		"lists of other scopes alone": {`{"scopes_supported":["openid"],"capabilities":["permission-v2"]}`, nil, v2},
	} {
		t.Run(name, func(t *testing.T) {
			f := &chartEMR{fakeEMR: &fakeEMR{}, paths: map[string]reply{}}
			if test.configuration != "" {
				f.paths["/.well-known/smart-configuration"] = reply{status: 200, body: test.configuration}
			}
			c := newClient(t, f, func(o *emr.Options) { o.Scopes, o.Context = test.scopes, true })
			granted, err := c.GrantedChart(t.Context())
			if err != nil || !slices.Equal(granted, emr.ChartTypes) {
				t.Errorf("granted %v, %v", granted, err)
			}
			if _, err = c.GrantedChart(t.Context()); err != nil {
				t.Error(err)
			}
			tokens := f.requests("token")
			if len(tokens) != 1 || len(f.requests("fhir")) != 1 {
				t.Fatalf("%d tokens, %d other requests", len(tokens), len(f.requests("fhir")))
			}
			requested := strings.Fields(tokens[0].form.Get("scope"))
			if !slices.Contains(requested, test.want) || slices.Contains(requested, v1) == slices.Contains(requested, v2) {
				t.Errorf("requested %v, want %s", requested, test.want)
			}
			if f.requests("fhir")[0].header.Get("Authorization") != "" {
				t.Error("the discovery document was requested with a token")
			}
		})
	}
}

// An EMR that grants less than requested, or refuses the scopes, permits those types only; deliveries sign in for themselves.
func TestGrantedCharts(t *testing.T) {
	f := &chartEMR{fakeEMR: &fakeEMR{}, paths: map[string]reply{}, grant: "system/Condition.read system/Coverage.rs system/Encounter.r system/Observation.read patient/Medication.read"}
	c := newClient(t, f)
	if granted, err := c.GrantedChart(t.Context()); err != nil || !slices.Equal(granted, []string{"Condition", "Coverage"}) {
		t.Errorf("granted %v, %v", granted, err)
	}
	f = &chartEMR{fakeEMR: &fakeEMR{}, paths: map[string]reply{}, deny: "invalid_scope"}
	c = newClient(t, f)
	if granted, err := c.GrantedChart(t.Context()); err != nil || len(granted) != 0 {
		t.Errorf("granted %v, %v", granted, err)
	}
	f.deny = "invalid_client"
	if _, err := c.GrantedChart(t.Context()); asError(t, err).Code != emr.CodeAuth {
		t.Errorf("an EMR that refuses the client: %v", err)
	}
	f.deny = ""
	f.paths["/Observation"] = reply{status: 201, header: map[string]string{"Location": baseURL + "/Observation/emr-1"}}
	if _, e := deliver(t, c); e != nil {
		t.Errorf("deliveries fail with the charts: %v", e)
	}
	last := f.requests("token")
	if scope := last[len(last)-1].form.Get("scope"); !strings.Contains(scope, "Observation.write") || strings.Contains(scope, "Condition") {
		t.Errorf("deliveries request %s", scope)
	}
	_, err := newClient(t, f, func(o *emr.Options) { o.TokenURL = "" }).GrantedChart(t.Context())
	if asError(t, err).Code != emr.CodeNotConfigured {
		t.Errorf("without an EMR: %v", err)
	}
}

// In a user's name the scopes of charts are requested with the others.
func TestScopesOfChartsInUsersName(t *testing.T) {
	for isOn, want := range map[bool]bool{true: true, false: false} {
		c := newClient(t, &fakeEMR{}, func(o *emr.Options) {
			o.AuthorizeURL, o.ApplicationType, o.Context = "https://emr.test/authorize", emr.Interactive, isOn
		})
		address, err := c.AuthorizationURL("state", strings.Repeat("v", 43))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(address, url.QueryEscape("user/Condition.read")); got != want {
			t.Errorf("with the context %v the address is %s", isOn, address)
		}
		if !strings.Contains(address, url.QueryEscape("user/Observation.write")) {
			t.Errorf("the address lost other scopes: %s", address)
		}
	}
}

func TestPagesOfCharts(t *testing.T) {
	page := func(next string, ids ...string) reply {
		entries := make([]string, len(ids))
		for i, id := range ids {
			entries[i] = `{"resource":{"resourceType":"Condition","id":"` + id + `"},"search":{"mode":"match"}}`
		}
		link := ""
		if next != "" {
			link = `"link":[{"relation":"self","url":"x"},{"relation":"next","url":"` + next + `"}],`
		}
		return reply{status: 200, body: `{"resourceType":"Bundle",` + link + `"entry":[` + strings.Join(entries, ",") + `]}`}
	}
	const first = "/Condition?_count=100&patient=e1"
	for name, test := range map[string]struct {
		paths map[string]reply
		limit int
		want  int
		isCut bool
		code  string
	}{
		"one page":               {map[string]reply{first: page("", "a", "b")}, 10, 2, false, ""},
		"no entries":             {map[string]reply{first: {status: 200, body: `{"resourceType":"Bundle","type":"searchset","total":0}`}}, 10, 0, false, ""},
		"two pages":              {map[string]reply{first: page("?page=2", "a", "b"), "/Condition?page=2": page("", "c")}, 10, 3, false, ""},
		"an absolute link":       {map[string]reply{first: page("https://EMR.test:443/fhir/r4/Condition?page=2", "a"), "/Condition?page=2": page("", "c")}, 10, 2, false, ""},
		"the limit":              {map[string]reply{first: page("?page=2", "a", "b"), "/Condition?page=2": page("", "c", "d")}, 3, 3, true, ""},
		"another origin":         {map[string]reply{first: page("https://elsewhere.test/Condition?page=2", "a")}, 10, 1, true, ""},
		"a link to itself":       {map[string]reply{first: page(baseURL+first, "a")}, 10, 1, true, ""},
		"a circle":               {map[string]reply{first: page("?page=2", "a"), "/Condition?page=2": page(baseURL+first, "b")}, 10, 2, true, ""},
		"outcomes between":       {map[string]reply{first: {status: 200, body: `{"resourceType":"Bundle","entry":[{"resource":{"resourceType":"OperationOutcome"},"search":{"mode":"outcome"}},{"fullUrl":"x"}]}`}}, 10, 0, false, ""},
		"a page of a proxy":      {map[string]reply{first: {status: 200, body: "<html>"}}, 10, 0, false, emr.CodeUnavailable},
		"half an answer":         {map[string]reply{first: {status: 200, body: `{"resourceType":"Bundle","entry":[{"resource":{"resou`}}, 10, 0, false, emr.CodeUnavailable},
		"another resource":       {map[string]reply{first: {status: 200, body: `{"resourceType":"OperationOutcome"}`}}, 10, 0, false, emr.CodeUnavailable},
		"the second page fails":  {map[string]reply{first: page("?page=2", "a")}, 10, 0, false, emr.CodeUnavailable},
		"a redirect":             {map[string]reply{first: {status: 302, header: map[string]string{"Location": "https://elsewhere.test/"}}}, 10, 0, false, emr.CodeUnavailable},
		"a rate limit":           {map[string]reply{first: {status: 429}}, 10, 0, false, emr.CodeRateLimited},
		"a scope that is absent": {map[string]reply{first: {status: 403}}, 10, 0, false, emr.CodeAuth},
	} {
		t.Run(name, func(t *testing.T) {
			f := &chartEMR{fakeEMR: &fakeEMR{}, paths: test.paths}
			found, isCut, err := newClient(t, f).SearchChart(t.Context(), "Condition", url.Values{"patient": {"e1"}}, test.limit)
			if e := asError(t, err); e != nil {
				if e.Code != test.code {
					t.Errorf("the error is %v", e)
				}
				return
			}
			if len(found) != test.want || isCut != test.isCut || test.code != "" {
				t.Errorf("found %d, cut %v", len(found), isCut)
			}
			for _, r := range f.requests("fhir") {
				if !strings.HasPrefix(strings.ToLower(r.url), baseURL) {
					t.Errorf("the token went to %s", r.url)
				}
			}
		})
	}
}
