package routes_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// extremeValues would cost work that grows with a number, overflow, or panic, where a parameter is not checked before it is used.
var extremeValues = []string{
	"0000-01", "0000-01-01", "9999-12", "9999-12-31T23:59:59Z", "-0001-01-01T00:00:00+99:99",
	"0e9223372036854775807", "-0.0e-9223372036854775808", "1e999", "9223372036854775807", "-9223372036854775808", "NaN",
	"8480-6$0e9223372036854775807", "8480-6$ge-0.00e4000000000", "http://loinc.org|8480-6$ap1e308",
	strings.Repeat("1,", 2500), strings.Repeat("9", 5000), strings.Repeat("%", 50), "\x00", "\u202e",
}

// No parameter makes the work of a request grow with a number in it, and none is a server error. Work without end is the test's timeout.
func TestExtremeParameters(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	token := vigiltest.Token(t, c.people[authz.Admin], c.now)
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	send := func(method, target, body string) {
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		if body != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		rec := httptest.NewRecorder()
		c.handler.ServeHTTP(rec, r)
		if sent++; rec.Code >= 500 && rec.Code != 503 {
			t.Errorf("%s %.200s answered %d: %.300s", method, target, rec.Code, rec.Body.String())
		}
	}
	for path, item := range document.Paths.Map() {
		if item.Get == nil || strings.Contains(path, "/export") || path == "/api/v1/jobs/" { // this app has no scheduler
			continue
		}
		target := pathParameter.ReplaceAllString(path, patient)
		for _, parameter := range append(item.Parameters, item.Get.Parameters...) {
			if parameter.Value.In != "query" {
				continue
			}
			for _, value := range extremeValues {
				query := url.Values{parameter.Value.Name: {value}}.Encode()
				send("GET", target+"?"+query, "")
				if strings.HasPrefix(path, "/fhir/R4/") && !strings.Contains(strings.TrimPrefix(path, "/fhir/R4/"), "/") {
					send("POST", target+"/_search", query)
				}
			}
		}
	}
	for _, name := range []string{"component-code-value-quantity", "date", "code", "_id"} { // the database's conditions have a depth
		list := name + "=" + strings.Repeat("8480-6$gt1,", 2500)
		repeated := strings.Repeat(name+"=ge2026-01-01&", 2500)
		for _, body := range []string{list, repeated} {
			send("GET", "/fhir/R4/Observation?patient="+patient+"&"+body, "")
			send("GET", "/fhir/R4/Observation/$lastn?patient="+patient+"&category=vital-signs&"+body, "")
			send("POST", "/fhir/R4/Observation/_search", "patient="+patient+"&"+body)
		}
	}
	if sent < 5000 {
		t.Errorf("only %d requests were sent", sent)
	}
}
