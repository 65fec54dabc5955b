package routes_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/web"
)

// Every path returns 405 with its allowed methods for every other method, to any caller and with or without the trailing
// slash. A fixed segment beside a parameter, such as patients/archived/ beside patients/{id}/, is never taken for the
// parameter.
func TestEveryPathForEveryMethod(t *testing.T) {
	c := newClinic(t)
	offered := map[string][]string{}
	for _, row := range routes.Rows() {
		offered[row.Path] = append(offered[row.Path], row.Method)
	}
	tried := 0
	for _, path := range slices.Sorted(maps.Keys(offered)) {
		var allow []string
		for _, method := range web.Methods {
			if slices.Contains(offered[path], method) {
				allow = append(allow, method)
				if method == http.MethodGet {
					allow = append(allow, http.MethodHead)
				}
			}
		}
		want := strings.Join(append(allow, http.MethodOptions), ", ")
		example := pathParameter.ReplaceAllString(path, "999999")
		for _, method := range append([]string{http.MethodHead, http.MethodTrace, "BREW"}, web.Methods...) {
			if slices.Contains(allow, method) {
				continue
			}
			for _, form := range slices.Compact([]string{example, strings.TrimSuffix(example, "/")}) {
				for _, token := range []string{"", vigiltest.Token(t, c.people[authz.Admin], c.now)} {
					tried++
					answer := c.requestWithToken(method, form, token)
					if got := answer.Header().Get("Allow"); answer.Code != 405 || got != want {
						t.Errorf("%s %s answers %d with Allow %q, want 405 with %q", method, form, answer.Code, got, want)
					}
					if method != http.MethodHead && code(t, answer) != "method_not_allowed" {
						t.Errorf("%s %s: %s", method, form, answer.Body)
					}
				}
			}
		}
	}
	if tried < 2000 {
		t.Errorf("tried %d requests only", tried)
	}
}
