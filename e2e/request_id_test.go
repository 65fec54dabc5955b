package e2e

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// One request id appears in the answer, the log line, the audit trail and the delivery attempt.
func TestRequestIDPropagation(t *testing.T) {
	emrServer := httptest.NewUnstartedServer(nil)
	emrURL := "http://" + emrServer.Listener.Addr().String()
	addr := freeAddr(t)
	p := newPractice(t, emrSettings(emrURL)...)
	emr, err := sandbox.NewEMR(sandbox.EMROptions{
		BaseURL: emrURL, PracticeCode: practiceCode, ClientID: clientID, JWKSURL: "http://" + addr + "/.well-known/jwks.json", Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	emrServer.Config.Handler = emr
	emrServer.Start()
	t.Cleanup(emrServer.Close)
	p.serve(t, addr)

	const good, bad = "trace-4711-good", "trace-4711-bad"
	patient := p.patient(t, object{"external_id": "Patient/" + emrPatient, "mrn": "TRACE-1"})
	body := encode(t, bloodPressure(patient, 120, 75, time.Now().Add(-time.Minute)))
	stored := p.send(t, "POST", "/api/v1/ingestion/blood-pressure/", p.Admin(t), body, "X-Request-ID", good).expect(t, 201)
	if stored.header.Get("X-Request-ID") != good {
		t.Errorf("the answer carries %s", stored.header.Get("X-Request-ID"))
	}
	p.send(t, "POST", "/api/v1/ingestion/blood-pressure/", p.Admin(t), "{", "X-Request-ID", bad).expect(t, 400)

	var delivered answer
	eventually(t, within, "the reading is delivered", func() bool {
		list := p.get(t, "/api/v1/fhir/transmissions/?patient_id="+patient, p.Admin(t)).expect(t, 200)
		results := at(t, list, "results").([]any)
		if len(results) != 1 || results[0].(object)["status"] != "transmitted" {
			return false
		}
		delivered = p.get(t, "/api/v1/fhir/transmissions/"+results[0].(object)["id"].(string)+"/", p.Admin(t)).expect(t, 200)
		return true
	})
	attempts := at(t, delivered, "attempts").([]any)
	if last := attempts[len(attempts)-1].(object); last["request_id"] != good {
		t.Errorf("the attempt carries %v", last["request_id"])
	}
	for _, event := range []string{"observation.create", "emr.transmit"} {
		trail := p.get(t, "/api/v1/audit/events/?event="+event, p.Admin(t)).expect(t, 200)
		if got := text(t, trail, "results.0.request_id"); got != good {
			t.Errorf("%s carries %s", event, got)
		}
	}
	for _, id := range []string{good, bad} {
		line := lineWith(p.Output(), `"request_id":"`+id+`"`)
		if !strings.Contains(line, `"route":"/api/v1/ingestion/blood-pressure/"`) || strings.Contains(line, patient) {
			t.Errorf("the log line of %s is: %s", id, line)
		}
	}
}
