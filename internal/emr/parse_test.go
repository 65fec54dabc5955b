package emr

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLocationID(t *testing.T) {
	for location, want := range map[string]string{
		"https://emr.test/fhir/Observation/123":              "123",
		"https://emr.test/fhir/Observation/123/":             "123",
		"https://emr.test/fhir/Observation/123/_history/1":   "123",
		"https://emr.test/fhir/Observation/a-1.B/_history/9": "a-1.B",
		"https://emr.test/fhir/Observation/123?_format=json": "123",
		"/fhir/Observation/123":                              "123",
		"Observation/123":                                    "123",
		"Observation/123/_history/1":                         "123",
		"Observation/_history/1":                             "",
		"Observation/Observation/_history/2":                 "Observation",
		"":                                                   "",
		"123":                                                "",
		"https://emr.test/fhir/Patient/123":                  "",
		"https://emr.test/fhir/Observation":                  "",
		"https://emr.test/fhir/Observation/":                 "",
		"https://emr.test/fhir/Observation/1/_history":       "",
		"https://emr.test/fhir/Observation/a%2Fb":            "",
		"https://emr.test/fhir/Observation/a b":              "",
		"https://emr.test/fhir/Observation/a%0d":             "",
		"https://emr.test/fhir/observation/1":                "",
		"Observation/" + strings.Repeat("a", 64):             strings.Repeat("a", 64),
		"Observation/" + strings.Repeat("a", 65):             "",
		"https://%zz/Observation/1":                          "",
	} {
		if got := locationID(location, "Observation"); got != want {
			t.Errorf("%q: %q, want %q", location, got, want)
		}
	}
}

func FuzzLocationID(f *testing.F) {
	f.Add("https://emr.test/fhir/Observation/123/_history/1")
	f.Add("Observation/a%2F")
	f.Add("//_history//")
	f.Fuzz(func(t *testing.T, location string) {
		id := locationID(location, "Observation")
		if id == "" {
			return
		}
		if !fhirID.MatchString(id) {
			t.Errorf("%q is no id", id)
		}
		if again := locationID("Observation/"+id, "Observation"); again != id {
			t.Errorf("%q reads back as %q", id, again)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add(422, []byte(`{"resourceType":"OperationOutcome","issue":[{"code":"value"}]}`), "3")
	f.Add(200, []byte(`{"resourceType":"Bundle","entry":[{"resource":{"resourceType":"Observation","id":"1","identifier":[{}]}}]}`), "")
	f.Add(200, []byte(`{"resourceType":"CapabilityStatement","rest":[{"resource":[{"type":"Patient"}]}]}`), "Fri, 20 Nov 2026 10:00:00 GMT")
	f.Add(503, []byte("\x00"), "99999999999999999999")
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, status int, body []byte, retry string) {
		got := response{status: status, body: body, header: http.Header{"Retry-After": {retry}, "Location": {retry}}}
		createdID(got, "Observation")
		readCapability(body)
		if page, ok := readFoundPage(body, "Observation"); !ok && len(page.observations) > 0 || slices.ContainsFunc(page.observations, func(o foundObservation) bool {
			return !fhirID.MatchString(o.ID) || !readSought("x", body).matches(o, false) && readSought("x", body).hasIdentifier(o)
		}) {
			t.Errorf("found %+v", page)
		}
		for _, method := range []string{"POST", "PUT", "GET"} {
			e := responseError(got, method, now)
			if e.Code == "" || e.Message == "" || e.RetryAfter < 0 || e.RetryAfter > 24*time.Hour {
				t.Errorf("%+v", e)
			}
			if strings.ContainsAny(e.Message, "\n\x00<") {
				t.Errorf("message %q", e.Message)
			}
		}
	})
}
