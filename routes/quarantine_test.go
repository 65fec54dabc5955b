package routes_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes"
)

const webhookSecret = "whsec_for_tests_only"

// gatewaySettings is a configuration with the vendors' secrets.
var gatewaySettings = config.Gateway{WebhookSecret: webhookSecret, TenoviSecret: vendorSecret, TelliSecret: vendorSecret, TimestampTolerance: 30 * time.Minute}

// newIngestingClinic is a clinic with a running writer and a signing gateway.
func newIngestingClinic(t testing.TB, change ...func(*routes.Engines)) *clinic {
	t.Helper()
	return newClinicWithRules(t, clinicRules, change...)
}

// clinicRules are the defaults of the settings, without the early warning score, which has stories of its own.
var clinicRules = ingest.Rules{
	PracticeZone: newYork, AutoTransform: true, MaxFuture: 5 * time.Minute,
	NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2},
	LateAfter:            24 * time.Hour, IrregularHeartbeats: 3,
	Suspect: vitals.Tolerance{Percent: 10, Amount: 10},
}

// newScoringClinic is a clinic that ingests with the early warning score.
func newScoringClinic(t testing.TB) *clinic {
	t.Helper()
	rules := clinicRules
	rules.EarlyWarning = true
	c := newClinicWithRules(t, rules)
	c.t = t
	return c
}

func newClinicWithRules(t testing.TB, rules ingest.Rules, change ...func(*routes.Engines)) *clinic {
	t.Helper()
	readings := ingest.NewReadingStore(rules)
	quiet := slog.New(slog.DiscardHandler)
	var c *clinic
	now := func() time.Time {
		if c == nil {
			return clock // the EMR client reads the clock before the clinic exists
		}
		return c.now
	}
	writer := ingest.NewWriter(readings, now, quiet, func([]ingest.Outcome) {})
	client, err := emr.New(emr.Options{Now: time.Now}) // it connects to no EMR
	if err != nil {
		t.Fatal(err)
	}
	c = newClinic(t, append([]func(*routes.Engines){func(e *routes.Engines) {
		e.ReadingStore, e.Writer, e.MaxFuture = readings, writer, 5*time.Minute
		e.DeliveryWorker = emr.NewWorker(emr.WorkerOptions{EMR: client, Load: ingest.NewReadingStore(ingest.Rules{}).LoadFHIR, Clock: now, Log: quiet})
		e.IngestPipeline = ingest.NewPipeline(ingest.PipelineOptions{
			Adapters: gateway.NewAdapters(gatewaySettings, e.MaxFuture), Readings: readings, Writer: writer, Devices: e.Devices, Log: quiet,
		})
	}}, change...)...)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { writer.Run(ctx, c.app) })
	for !writer.Alive(c.now, time.Hour) {
		runtime.Gosched()
	}
	t.Cleanup(func() { cancel(); run.Wait() })
	return c
}

// webhook posts a body as the gateway does.
func (c *clinic) webhook(body []byte, sentAt time.Time) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/gateway/webhook/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(gateway.SignatureHeader, gateway.Sign(webhookSecret, body))
	r.Header.Set(gateway.TimestampHeader, strconv.FormatInt(sentAt.Unix(), 10))
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	return rec
}

func (c *clinic) postEvent(t testing.TB, body string) reply {
	t.Helper()
	rec := c.webhook([]byte(body), c.now)
	vigiltest.CheckResponse(t, http.MethodPost, "/api/v1/gateway/webhook/", rec.Code, rec.Header(), rec.Body.Bytes())
	return reply{t, "webhook", rec.Code, rec.Body.String()}
}

func cuffEvent(device, patient string, systolic int, at time.Time) string {
	return fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":%q,"measurement_type":"bp","values":{"systolic":%d,"diastolic":80},"timestamp":%q}`,
		device, patient, systolic, at.Format(time.RFC3339))
}

func TestQuarantine(t *testing.T) {
	c := newIngestingClinic(t)
	unmatched := cuffEvent("BP-1", "nobody", 150, c.now)
	id := c.postEvent(t, unmatched).want(200).wantAt(object{"status": "quarantined", "reason": "unknown_patient"}).at("event_id").(string)
	c.postEvent(t, unmatched).want(200).wantAt(object{"status": "quarantined", "event_id": id})
	c.postEvent(t, strings.Replace(unmatched, `"systolic":150`, `"systolic":"HI"`, 1)).wantFields("values.systolic")
	c.postEvent(t, `{"event_type":`).want(400, "parse_error")

	const list = "/ingestion/quarantine/"
	if all := c.request(authz.MA, "GET", list, nil).results(); len(all) != 3 {
		t.Errorf("%d events are listed", len(all))
	}
	rejected := c.request(authz.Admin, "GET", list+query("status", "rejected", "reason", "validation_error"), nil).results()
	if len(rejected) != 1 || rejected[0]["field_errors"].(object)["values.systolic"] == nil || rejected[0]["gateway_patient_id"] != "nobody" {
		t.Errorf("rejected: %v", rejected)
	}
	c.request(authz.Admin, "GET", list+query("status", "handled"), nil).wantFields("status")

	patient := c.enroll(nil)
	release, discard := list+id+"/release/", list+rejected[0]["id"].(string)+"/discard/"
	c.request(authz.MA, "POST", release, object{}).wantFields("patient_id")
	c.request(authz.MA, "POST", list+"0194c5a8-0000-7000-8000-000000000000/release/", object{}).want(404)
	c.request(authz.MA, "POST", release, object{"patient_id": "0194c5a8-0000-7000-8000-000000000000"}).want(404)
	stored := c.request(authz.MA, "POST", release, object{"patient_id": patient}).want(201).
		wantAt(object{"patient_id": patient, "systolic": 150.0, "source": "gateway", "alert_triggered": true})
	c.request(authz.MA, "POST", release, object{"patient_id": patient}).want(400, "invalid_state")
	c.postEvent(t, unmatched).want(200).wantAt(object{"status": "duplicate", "observation_id": stored.at("id")})
	c.request(authz.MA, "POST", discard, object{"reason": " "}).wantFields("reason")
	c.request(authz.MA, "POST", discard, object{"reason": "a test device"}).want(200).wantAt(object{"status": "discarded", "closed_by": c.people[authz.MA].Email()})
	c.request(authz.MA, "POST", discard, object{"reason": "a test device"}).want(400, "invalid_state")

	c.wantRoles("GET", list, nil, authz.Admin, authz.ClinicalManager, authz.MA, authz.DataMonitor)
	c.wantRoles("POST", release, object{"patient_id": patient}, authz.Admin, authz.ClinicalManager, authz.MA)
	c.wantRoles("POST", discard, object{"reason": "x"}, authz.Admin, authz.ClinicalManager, authz.MA)
}

func TestEnteredInError(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	body := object{"patient_id": patient, "systolic": 150, "diastolic": 80, "measured_at": c.now.Format(time.RFC3339)}
	id := c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", body).want(201).at("id").(string)
	path := "/ingestion/observations/" + id + "/entered-in-error/"
	c.request(authz.Nurse, "POST", path, object{}).wantFields("reason")
	c.request(authz.Nurse, "POST", "/ingestion/observations/0194c5a8-0000-7000-8000-000000000000/entered-in-error/", object{"reason": "x"}).want(404)
	for range 2 {
		c.request(authz.Nurse, "POST", path, object{"reason": "wrong arm"}).want(200).wantAt(object{"status": "entered_in_error", "fhir_status": "failed"})
	}
	c.request(authz.Nurse, "GET", "/fhir/observations/"+id+"/", nil).want(200).wantAt(object{"status": "entered-in-error", "meta.versionId": "2"})
	c.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transform/", nil).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transmit/", nil).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", body).want(200).wantAt(object{"duplicate": true, "status": "entered_in_error"})
	c.wantRoles("POST", path, object{"reason": "x"}, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse)
}

func TestIngestionStatus(t *testing.T) {
	var writer *ingest.Writer
	c := newIngestingClinic(t, func(e *routes.Engines) { writer = e.Writer })
	const path = "/ingestion/status/"
	c.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{
		"status": "operational", "queue_depth": 0.0, "observations_today": 0.0, "processing_rate": "0.0/min", "last_processed_at": nil,
	})
	c.enroll(object{"gateway_patient_id": "gw-1"})
	for i := range 3 {
		c.postEvent(t, cuffEvent(fmt.Sprint("BP-", i), "gw-1", 120, c.now.Add(-time.Duration(i)*time.Hour))).want(200)
	}
	c.request(authz.DataMonitor, "GET", path, nil).want(200).wantAt(object{
		"status": "operational", "queue_depth": 3.0, "observations_today": 3.0, "observations_this_hour": 3.0, "processing_rate": "0.2/min",
		"last_processed_at": "2026-01-15T13:45:00Z", "fhir_pipeline.pending": 3.0, "fhir_pipeline.failed_today": 0.0,
	})
	for writer.Busy() { // the sender has its answer before the writer is idle; six minutes more would look like a stuck commit
		time.Sleep(time.Millisecond)
	}
	c.now = c.now.Add(6 * time.Minute)
	c.request(authz.Admin, "GET", path, nil).want(200).wantAt(object{"status": "degraded"})
	c.wantRoles("GET", path, nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.DataMonitor)

	still := newClinic(t, func(e *routes.Engines) { // without a running writer
		e.Writer = ingest.NewWriter(ingest.NewReadingStore(ingest.Rules{PracticeZone: newYork}), time.Now, e.Log, nil)
	})
	still.request(authz.Admin, "GET", path, nil).want(200).wantAt(object{"status": "down"})
}
