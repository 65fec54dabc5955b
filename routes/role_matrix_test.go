package routes_test

import (
	"encoding/csv"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

var pathParameter = regexp.MustCompile(`\{[a-z0-9_]+\}`)

// matrixRows reads the role matrix, by method and path with every parameter written {}.
func matrixRows(t *testing.T) map[string][]string {
	t.Helper()
	file, err := os.Open("../internal/authz/testdata/matrix.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, line := range lines[1:] {
		rows[line[0]+" "+pathParameter.ReplaceAllString(line[1], "{}")] = line
	}
	return rows
}

// rowsByEffect returns the routes, last the one that ends the tokens of its caller.
func rowsByEffect() []routes.Row {
	rows := routes.Rows()
	slices.SortStableFunc(rows, func(a, b routes.Row) int {
		return strings.Count(a.Path, "/logout-all/") - strings.Count(b.Path, "/logout-all/")
	})
	return rows
}

// Every route is called as every role and without a token: access matches the matrix, and a refused caller is refused
// before any lookup. The parameters name nothing that exists.
func TestEveryRouteForEveryRole(t *testing.T) {
	c := newClinic(t)
	matrix := matrixRows(t)
	for _, route := range rowsByEffect() {
		name := route.Method + " " + pathParameter.ReplaceAllString(route.Path, "{}")
		row, known := matrix[name]
		if !known {
			t.Errorf("%s %s is served but has no row in internal/authz/testdata/matrix.csv", route.Method, route.Path)
			continue
		}
		if string(route.Action) != row[2] {
			t.Errorf("%s names the action %q, the matrix %q", name, route.Action, row[2])
		}
		path := pathParameter.ReplaceAllString(route.Path, "999999")
		open := row[3] == "pub" || row[3] == "signed"
		anonymous := c.requestWithToken(route.Method, path, "")
		if got := anonymous.Code == 401 && code(t, anonymous) == "not_authenticated"; got == open {
			t.Errorf("%s answers %d without a token", name, anonymous.Code)
		}
		for i, role := range authz.Roles {
			answer := c.requestWithToken(route.Method, path, vigiltest.Token(t, c.people[role], c.now))
			switch refused := answer.Code == 403 && code(t, answer) != "reauthentication_required"; { // these tokens belong to no session
			case row[3+i] == "no" && (!refused || code(t, answer) != "permission_denied"):
				t.Errorf("%s is not for %s, but answers %d", name, role, answer.Code)
			case row[3+i] != "no" && refused:
				t.Errorf("%s is for %s, but answers 403", name, role)
			case !open && answer.Code == 401:
				t.Errorf("%s answers 401 to %s: %s", name, role, answer.Body)
			}
		}
	}
}

// Rows with a permission that depends on the query are called with it.
func TestRowsWithAQuery(t *testing.T) {
	c := newClinic(t)
	calls := 0
	for _, row := range matrixRows(t) {
		if !strings.Contains(row[1], "?") {
			continue
		}
		calls++
		for i, role := range authz.Roles {
			if got := c.requestWithToken(row[0], row[1], vigiltest.Token(t, c.people[role], c.now)).Code; (got == 403) != (row[3+i] == "no") {
				t.Errorf("%s %s answers %d to %s", row[0], row[1], got, role)
			}
		}
	}
	if calls == 0 {
		t.Error("no row has a query")
	}
}

func (c *clinic) requestWithToken(method, path, token string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader("{}"))
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	c.handler.ServeHTTP(answer, request)
	return answer
}

// A refusal is recorded once, with the route and without the request's parameters.
func TestRefusalsAreRecorded(t *testing.T) {
	c := newClinic(t)
	before := vigiltest.RowCounts(t, c.app)
	c.request(authz.Nurse, "GET", "/audit/events/77/?actor=secret", nil).want(403, "permission_denied")
	c.request(authz.Patient, "POST", "/auth/register/", `{"email":"x"}`).want(403, "permission_denied")
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 1 || added["audit_log"] != 2 {
		t.Errorf("two refusals left %v", added)
	}
	page, total, err := audit.List(c.app, audit.Filter{Event: string(audit.AccessDenied)}, 0, 10)
	if err != nil || total != 2 {
		t.Fatalf("%d entries, %v", total, err)
	}
	if got := page[1]; got.ResourceID != "GET /api/v1/audit/events/{id}/" || got.Outcome != "4" || got.ActorEmail != c.people[authz.Nurse].Email() || got.Patient != "" {
		t.Errorf("recorded %+v", got)
	}
}
