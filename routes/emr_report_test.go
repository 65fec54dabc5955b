package routes_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// charted returns the text of the EMR's documents, oldest first.
func (a *atTheEMR) charted(t *testing.T, want int) (documents []map[string]any, texts []string) {
	t.Helper()
	documents = a.emr.Documents()
	if len(documents) != want {
		a.t.Fatalf("the EMR has %d documents, want %d", len(documents), want)
	}
	for _, d := range documents {
		attachment := d["content"].([]any)[0].(map[string]any)["attachment"].(map[string]any)
		raw, err := base64.StdEncoding.DecodeString(attachment["data"].(string))
		if err != nil {
			a.t.Fatal(err)
		}
		_, text := readPDF(t, reply{t: t, status: 200, body: string(raw)})
		texts = append(texts, strings.Join(strings.Fields(text), " "))
	}
	return documents, texts
}

func (a *atTheEMR) send(body object) reply {
	a.t.Helper()
	path := "/patients/" + a.patient + "/report/send/"
	if body == nil {
		return a.request(authz.Nurse, "POST", path, nil)
	}
	return a.request(authz.Nurse, "POST", path, body)
}

func (a *atTheEMR) pressure(systolic int, after time.Duration) (observation string) {
	a.t.Helper()
	a.now = a.now.Add(after)
	return a.postEvent(a.t, cuffEvent("BP-1", "gw-1", systolic, a.now)).want(200).at("observation_id").(string)
}

// A report that a person sends is in the chart once; sent again it is a new version if readings came since, and else the same; a retraction corrects it.
func TestSendMonthReport(t *testing.T) {
	a := newAtEMROf(t, "documents-only")
	a.pressure(131, time.Minute)
	wrong := a.pressure(139, time.Hour)
	a.deliver(time.Minute)
	a.charted(t, 0)
	sent := a.send(nil).want(202).object()
	if sent["form"] != "document" || sent["status"] != "pending" || sent["observation_id"] != nil {
		t.Errorf("sent %v", sent)
	}
	a.send(object{"month": a.now.Format("2006-01")}).want(202).wantAt(object{"id": sent["id"]})
	a.deliver(time.Minute)
	documents, texts := a.charted(t, 1)
	wantWords(t, texts[0], "mean of 7 days 135/80, of all days 135/80")
	if title := documents[0]["description"]; title != "Home monitoring report 2026-01-01 to "+a.now.In(newYork).Format(time.DateOnly) {
		t.Errorf("the title is %v", title)
	}
	period := documents[0]["context"].(map[string]any)["period"].(map[string]any)
	if end, err := time.Parse(time.RFC3339, period["end"].(string)); err != nil || end.After(a.now) {
		t.Errorf("the period is %v at %v", period, a.now)
	}
	a.send(nil).want(200).wantAt(object{"id": sent["id"], "status": "transmitted"})
	a.deliver(time.Minute)
	a.charted(t, 1)

	a.pressure(143, time.Minute)
	a.send(nil).want(202).wantAt(object{"id": sent["id"]})
	a.deliver(time.Minute)
	documents, texts = a.charted(t, 2)
	wantWords(t, texts[1], "mean of 7 days 138/80, of all days 138/80")
	if documents[1]["relatesTo"] == nil {
		t.Error("the new version replaces nothing")
	}
	a.retract(wrong)
	a.deliver(time.Minute)
	_, texts = a.charted(t, 3)
	wantWords(t, texts[2], "mean of 7 days 137/80, of all days 137/80", "1 withdrawn")

	a.now = time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)
	if queued, err := a.worker.QueueMonths(t.Context(), a.app, a.now); err != nil || queued != 0 {
		t.Errorf("the job queued %d documents of a month that was sent, %v", queued, err)
	}
	a.send(object{"month": "2026-01"}).want(200)
	a.send(nil).want(409, "no_readings")
}

// The document about an escalation has its history and the readings around it.
func TestSendEscalationReport(t *testing.T) {
	a := newAtEMROf(t, "documents-only")
	a.deliver(time.Minute)
	a.pressure(131, time.Minute)
	a.pressure(202, time.Minute)
	escalation := a.request(authz.Nurse, "GET", "/escalations/?patient_id="+a.patient, nil).results()[0]
	sent := a.send(object{"escalation_id": escalation["id"]}).want(202)
	a.deliver(time.Minute)
	documents, texts := a.charted(t, 1)
	wantWords(t, texts[0], "Escalation (stat, open)", "Opened.", "202/", "about the escalation of Jan")
	if title := documents[0]["description"].(string); !strings.HasSuffix(title, ", about an escalation") {
		t.Errorf("the title is %s", title)
	}
	a.send(object{"escalation_id": escalation["id"]}).want(200)
	path := "/escalations/" + fmt.Sprint(escalation["id"]) + "/"
	a.now = a.now.Add(time.Hour)
	a.request(authz.Nurse, "PATCH", path, object{"status": "in_progress", "notes": "Called; she took the pills late."}).want(200)
	a.send(object{"escalation_id": escalation["id"]}).want(202).wantAt(object{"id": sent.at("id")})
	a.deliver(time.Minute)
	_, texts = a.charted(t, 2)
	wantWords(t, texts[1], "she took the pills late", "Taken.")
	a.now = a.now.Add(48 * time.Hour)
	a.request(authz.Nurse, "PATCH", path, object{"status": "resolved", "resolution_notes": "Repeat was 128 over 80."}).want(200)
	a.send(object{"escalation_id": escalation["id"]}).want(202)
	a.deliver(time.Minute)
	_, texts = a.charted(t, 3)
	wantWords(t, texts[2], "Escalation (stat, resolved)", "Repeat was 128 over 80.")
	a.send(object{}).want(202) // the month is a document of its own
	a.deliver(time.Minute)
	a.charted(t, 4)

	other := a.enroll(object{"external_id": "erx-2"})
	a.request(authz.Nurse, "POST", "/patients/"+other+"/report/send/", object{"escalation_id": escalation["id"]}).want(404)
	a.send(object{"escalation_id": 999}).want(404)
}

// Through lost answers and errors a document is in the chart once; one that the EMR refuses waits with the reason, and can be tried again.
func TestSendReportOnce(t *testing.T) {
	for name, fault := range map[string]sandbox.Fault{
		"answer lost": {Match: "POST /fhir/demo/DocumentReference", Times: 2, Drop: sandbox.DropAfter},
		"not reached": {Match: "POST /fhir/demo/DocumentReference", Times: 2, Drop: sandbox.DropBefore},
		"unavailable": {Match: "POST /fhir/demo/DocumentReference", Times: 2, Status: 503},
		"gateway":     {Match: "POST /fhir/demo/DocumentReference", Times: 2, Status: 502},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAtEMROf(t, "documents-only")
			a.pressure(131, time.Minute)
			a.deliver(time.Minute)
			a.emr.Fail(fault)
			id := a.send(nil).want(202).at("id").(string)
			for range 5 {
				a.deliver(10 * time.Minute)
			}
			a.charted(t, 1)
			a.request(authz.Nurse, "GET", "/fhir/transmissions/"+id+"/", nil).want(200).wantAt(object{"status": "transmitted"})
			a.send(nil).want(200)
		})
	}
}

func TestRetryDocument(t *testing.T) {
	a := newAtEMROf(t, "documents-only")
	a.pressure(131, time.Minute)
	a.deliver(time.Minute)
	a.emr.Fail(sandbox.Fault{Match: "POST /fhir/demo/DocumentReference", Status: 413})
	id := a.send(nil).want(202).at("id").(string)
	path := "/fhir/transmissions/" + id + "/"
	a.request(authz.Nurse, "POST", path+"retry/", nil).want(400, "invalid_state")
	for range 8 {
		a.deliver(time.Hour)
	}
	a.charted(t, 0)
	a.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{
		"status": "failed", "given_up": true, "next_retry_at": nil, "error_code": "too_large", "remedy.code": "allow_size", "attempt_count": 0.0,
	})
	if n := len(a.request(authz.Nurse, "GET", path, nil).list("attempts")); n != 1 {
		t.Errorf("a document that is too large was sent %d times", n)
	}
	a.emr.ClearFaults()
	a.request(authz.MA, "POST", path+"retry/", nil).want(403)
	a.request(authz.Nurse, "POST", path+"retry/", nil).want(200).wantAt(object{"status": "pending"})
	a.deliver(time.Minute)
	a.charted(t, 1)
	a.request(authz.Nurse, "POST", path+"retry/", nil).want(400, "invalid_state")
	a.request(authz.Nurse, "POST", "/fhir/transmissions/TXN-2026-999999/retry/", nil).want(404)

	a.emr.Fail(sandbox.Fault{Match: "POST /fhir/demo/DocumentReference", Status: 422, Times: 1})
	a.pressure(133, time.Minute)
	a.send(nil).want(202)
	a.deliver(time.Minute)
	a.send(nil).want(202).wantAt(object{"status": "pending"}) // a person's request tries a failed one again
	a.deliver(time.Minute)
	a.charted(t, 2)
}

func TestSendReportRefusals(t *testing.T) {
	a := newAtEMROf(t, "documents-only")
	a.pressure(131, time.Minute)
	a.deliver(time.Minute)
	for field, bodies := range map[string][]object{
		"month":         {{"month": "2026-02"}, {"month": "2026-13"}, {"month": "2026-1"}, {"month": "2026-01-01"}, {"month": "January"}, {"month": ""}, {"month": 202601}, {"month": "2026-01", "escalation_id": 1}},
		"escalation_id": {{"escalation_id": "one"}, {"escalation_id": 0}, {"escalation_id": -4}, {"escalation_id": 1.5}},
	} {
		for _, body := range bodies {
			if got := a.send(body); got.status != 400 {
				t.Errorf("%v: %s", body, got.body)
			} else {
				got.wantFields(field)
			}
		}
	}
	a.send(object{"month": "2025-11"}).want(409, "no_readings")
	a.request(authz.MA, "POST", "/patients/"+a.patient+"/report/send/", nil).want(403)
	a.request(authz.Nurse, "POST", "/patients/00000000-0000-4000-8000-000000000000/report/send/", nil).want(404)
	unlinked := a.enroll(object{"last_name": "Byron"})
	a.request(authz.Nurse, "POST", "/patients/"+unlinked+"/report/send/", nil).want(409, "patient_not_linked")

	for profile, status := range map[string]int{"nothing": http.StatusConflict, "no-identifier-search": http.StatusConflict, "everything": http.StatusAccepted} {
		a := newAtEMROf(t, profile)
		a.pressure(131, time.Minute)
		a.deliver(time.Minute)
		if status == http.StatusConflict {
			a.send(nil).want(409, "documents_not_accepted")
			continue
		}
		a.send(nil).want(status)
		a.deliver(time.Minute)
		a.charted(t, 1)
		a.pressure(133, time.Minute)
		a.send(nil).want(202)
		a.deliver(time.Minute)
		_, texts := a.charted(t, 1) // updated in place
		wantWords(t, texts[0], "mean of 7 days 132/80")
	}
	newClinic(t).request(authz.Nurse, "POST", "/patients/"+a.patient+"/report/send/", nil).want(404)
}
