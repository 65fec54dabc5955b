package vigiltest

import (
	"net/http"
	"strings"
	"testing"
)

func TestCheckResponseFindsViolations(t *testing.T) {
	contract, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	const live, refused = `{"status":"ok"}`, `{"detail":"No.","code":"throttled"}`
	for name, test := range map[string]struct {
		method, path string
		status       int
		kind, body   string
		wrong        string // part of the error, "" for none
	}{
		"fits":              {"GET", "/health/live", 200, "application/json", live, ""},
		"head":              {"HEAD", "/health/live", 200, "application/json", "", ""},
		"without the slash": {"GET", "/api/v1/schema", 400, "application/json", `{"detail":"No.","code":"validation_error"}`, ""},
		"any request's":     {"GET", "/health/live", 429, "application/json", refused, ""},
		"unknown path":      {"GET", "/health/live/x", 200, "application/json", live, "operation is not described"},
		"unknown method":    {"POST", "/health/live", 200, "application/json", live, "operation is not described"},
		"unknown status":    {"GET", "/health/live", 404, "application/json", refused, "status is not described"},
		"wrong value":       {"GET", "/health/live", 200, "application/json", `{"status":"up"}`, "jsonschema validation failed"},
		"missing field":     {"GET", "/health/live", 200, "application/json", `{}`, "jsonschema validation failed"},
		"unknown field":     {"GET", "/health/live", 200, "application/json", `{"status":"ok","x":1}`, "jsonschema validation failed"},
		"error without one": {"GET", "/health/live", 500, "application/json", `{"detail":"No."}`, "jsonschema validation failed"},
		"empty field error": {"GET", "/api/v1/schema/", 400, "application/json", `{"detail":"No.","code":"x","field_errors":{"a":[]}}`, "jsonschema validation failed"},
		"wrong format":      {"POST", "/api/v1/gateway/webhook/", 200, "application/json", `{"status":"accepted","event_id":"1","observation_id":"2"}`, "jsonschema validation failed"},
		"other type":        {"GET", "/health/live", 200, "text/html", live, "Content-Type"},
		"not json":          {"GET", "/health/live", 200, "application/json", `ok`, "reading the body"},
	} {
		err := contract.check(test.method, test.path, test.status, http.Header{"Content-Type": {test.kind}}, []byte(test.body))
		if test.wrong == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.wrong)
		}
	}
}
