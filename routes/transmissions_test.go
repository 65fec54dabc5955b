package routes_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/routes"
)

// mailbox is an EMR that accepts everything, or refuses it for one reason.
type mailbox struct {
	emr.EMR
	lock    sync.Mutex
	refusal *emr.Error
	off     atomic.Bool
}

func (m *mailbox) refuse(e *emr.Error) { m.lock.Lock(); defer m.lock.Unlock(); m.refusal = e }

func (m *mailbox) Configured() bool { return !m.off.Load() }

func (m *mailbox) Prepare(context.Context) {}

func (m *mailbox) CanReceive() bool { return true }

func (m *mailbox) TakesDocuments() bool { return false }

func (m *mailbox) TakesReadings() bool { return true }

func (m *mailbox) CreateObservation(_ context.Context, id string, _ []byte, requestID string) (emr.Created, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	attempt := emr.Attempt{Took: 31 * time.Millisecond, Status: 201, RequestID: requestID}
	if m.refusal != nil {
		e := *m.refusal
		attempt.Status, attempt.Code = e.Status, e.Code
		e.Attempts = []emr.Attempt{attempt}
		return emr.Created{}, &e
	}
	return emr.Created{EMRID: "emr-" + id[:8], Attempts: []emr.Attempt{attempt}}, nil
}

func (m *mailbox) FindObservation(context.Context, string, []byte) (string, bool, error) {
	return "", false, nil
}

// Probe succeeds unless all requests fail for lack of a connection.
func (m *mailbox) Probe(context.Context) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.refusal != nil && m.refusal.Status == 0 {
		return m.refusal
	}
	return nil
}

func (m *mailbox) LookUpObservation(context.Context, string, []byte) (string, bool, error) {
	return "", false, nil
}

func (m *mailbox) HasObservation(context.Context, string, []byte) (has, known bool, err error) {
	return false, true, nil
}

func (m *mailbox) UpdateObservation(_ context.Context, emrID string, _ []byte, requestID string, _ bool) (emr.Created, error) {
	return emr.Created{EMRID: emrID, Attempts: []emr.Attempt{{Took: 31 * time.Millisecond, Status: 200, RequestID: requestID}}}, nil
}

// delivering is a clinic with a running worker.
type delivering struct {
	*clinic
	emr        *mailbox
	finished   chan emr.Result
	patient    string
	at         atomic.Pointer[time.Time] // the worker's clock
	stopWorker func()
}

func (d *delivering) advance(by time.Duration) {
	d.now = d.now.Add(by)
	d.at.Store(new(d.now))
}

func newDelivering(t *testing.T, change ...func(*routes.Engines)) *delivering {
	t.Helper()
	d := &delivering{emr: &mailbox{}, finished: make(chan emr.Result, 10)}
	d.at.Store(new(clock))
	at := func() time.Time { return *d.at.Load() }
	worker := emr.NewWorker(emr.WorkerOptions{
		EMR: d.emr, Schedule: emr.Schedule{5 * time.Minute}, Load: ingest.NewReadingStore(ingest.Rules{}).LoadFHIR, Clock: at,
		Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }, StopTimeout: time.Hour, // rounds run after it stopped
		Finished: func(s emr.Result) { d.finished <- s },
	})
	fine := dashboard.Probes{
		Database: func(context.Context, core.App) error { return nil }, EMR: func(context.Context) error { return nil },
		FHIR: func() error { return nil }, Workers: func(core.App) (int, int, error) { return 1, 0, nil },
	}
	monitor := dashboard.NewMonitor(fine, at, slog.New(slog.DiscardHandler))
	d.clinic = newClinic(t, func(e *routes.Engines) {
		e.DeliveryWorker, e.Monitor, e.ProcessPendingLimit = worker, monitor, 100
		for _, f := range change {
			f(e)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { worker.Run(ctx, d.app) })
	d.stopWorker = func() { cancel(); run.Wait() }
	t.Cleanup(d.stopWorker)
	for worker.RunningSince().IsZero() {
		runtime.Gosched()
	}
	d.patient = d.enroll(object{"external_id": "e-1"})
	return d
}

// observe stores a reading without a FHIR form.
func (d *delivering) observe() (id string) {
	id = collections.NewUUID()
	d.insert(collections.Observations, dbx.Params{
		"id": id, "patient": d.patient, "observation_type": "weight", "weight_kg": 80.5, "measured_at": collections.FormatInstant(clock),
		"status": "final", "source": "api", "created_at": collections.FormatInstant(clock), "updated_at": collections.FormatInstant(clock),
	})
	return id
}

func TestTransformAndTransmit(t *testing.T) {
	d := newDelivering(t)
	id := d.observe()
	path := "/fhir/observations/" + id
	d.request(authz.Nurse, "POST", path+"/transmit/", nil).want(400, "not_transformed")
	d.request(authz.Nurse, "POST", path+"/transform/", nil).want(200).wantAt(object{"observation_id": id, "fhir_status": "pending"})
	if s := <-d.finished; s.ObservationID != id || s.Failed() { // woken by the transform
		t.Fatalf("%+v", s)
	}
	d.request(authz.Nurse, "POST", path+"/transform/", nil).want(400, "invalid_state")
	d.request(authz.Nurse, "GET", path+"/", nil).want(200).wantAt(object{"meta.versionId": "1", "status": "final"})

	// Refused, then sent manually: refused again, then accepted.
	d.emr.refuse(&emr.Error{Code: emr.CodeInvalidResource, Status: 422, Message: "Invalid FHIR resource: value", Diagnostics: phi.Text("Ada weighs 80")})
	other := d.observe()
	path = "/fhir/observations/" + other
	d.request(authz.Provider, "POST", path+"/transform/", nil).want(200)
	<-d.finished
	number, _ := d.request(authz.Provider, "POST", path+"/transmit/", nil).want(200).wantAt(object{"fhir_status": "processing"}).at("transmission_id").(string)
	<-d.finished
	failed := d.request(authz.DataMonitor, "GET", "/fhir/transmissions/"+number+"/", nil).want(200).wantAt(object{
		"id": number, "status": "failed", "error_code": "invalid_resource", "error_message": "Invalid FHIR resource: value", "next_retry_at": nil,
		"patient_name": "Ada Lovelace", "attempt_count": 1.0,
	})
	attempts, _ := failed.at("attempts").([]any)
	if len(attempts) != 2 {
		t.Fatalf("attempts %v", attempts)
	}
	first := attempts[0].(object)
	delete(first, "request_id")
	if diff := cmp.Diff(object{"started_at": "2026-01-15T13:45:00Z", "duration_ms": 31.0, "status": 422.0, "error_code": "invalid_resource"}, first); diff != "" {
		t.Error(diff)
	}
	d.emr.refuse(nil)
	d.request(authz.Provider, "POST", path+"/transmit/", nil).want(200)
	<-d.finished
	d.request(authz.DataMonitor, "GET", "/fhir/transmissions/"+number+"/", nil).want(200).wantAt(object{"status": "transmitted", "error_code": nil})

	for _, unknown := range []string{collections.NewUUID(), "x"} {
		d.request(authz.Admin, "POST", "/fhir/observations/"+unknown+"/transform/", nil).want(404)
		d.request(authz.Admin, "POST", "/fhir/observations/"+unknown+"/transmit/", nil).want(404)
	}
	d.request(authz.Admin, "GET", "/fhir/transmissions/TXN-2026-999999/", nil).want(404)

	d.request(authz.DataMonitor, "GET", "/fhir/transmissions/", nil).want(200)
	var recorded int
	err := d.app.DB().NewQuery(`SELECT COUNT(*) FROM audit_log WHERE event = 'patient.read' AND resource_type = 'Transmission'`).Row(&recorded)
	if err != nil || recorded == 0 {
		t.Errorf("the list names patients, and %d entries say so (%v)", recorded, err)
	}
}

func TestFHIRStatus(t *testing.T) {
	d := newDelivering(t)
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{
		"status": "operational", "emr_connection": "connected", "emr_last_successful_transmission": nil, "today_stats.success_rate": 100.0,
		"uptime": "100.0%", "queue.pending": 0.0,
	})
	for i := range 21 {
		d.insert(collections.Transmissions, dbx.Params{
			"id": "TXN-2025-00000" + string(rune('a'+i)), "observation": collections.NewUUID(), "patient": d.patient, "status": "failed",
			"next_retry_at": collections.FormatInstant(clock.Add(time.Hour)), "last_attempted_at": collections.FormatInstant(clock.Add(-24 * time.Hour)),
		})
	}
	for i, status := range []string{"healthy", "degraded", "down"} {
		d.insert(collections.HealthSamples, dbx.Params{"sampled_at": collections.FormatInstant(clock.Add(-time.Duration(i) * time.Hour)), "status": status})
	}
	d.insert(collections.HealthSamples, dbx.Params{"sampled_at": collections.FormatInstant(clock.AddDate(0, -2, 0)), "status": "down"})
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{
		"status": "degraded", "queue.failed_awaiting_retry": 21.0, "today_stats.failed": 0.0, "uptime": "66.6%",
	})
	d.emr.off.Store(true)
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"emr_connection": "not_configured"})
	d.wantRoles("GET", "/fhir/status/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.DataMonitor)
}

func TestProcessPending(t *testing.T) {
	d := newDelivering(t)
	d.emr.refuse(&emr.Error{Code: emr.CodeUnavailable, Status: 503, Message: "EMR unavailable (503)"})
	id := d.observe()
	if _, err := d.app.DB().Update(collections.Observations, dbx.Params{"transform_error": "The reading has no FHIR form."}, dbx.HashExp{"id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
	// The missing FHIR form is created, and the reading is sent by this call or by the worker that it woke.
	d.request(authz.Admin, "POST", "/fhir/process-pending/", nil).want(200).wantAt(object{"details.transformed": 1.0})
	if s := <-d.finished; s.ObservationID != id || s.RetryAt != clock.Add(5*time.Minute) {
		t.Errorf("%+v", s)
	}
	d.stopWorker() // another wake-up might let the worker see first that the retry is due
	d.advance(5 * time.Minute)
	answer := d.request(authz.Admin, "POST", "/fhir/process-pending/", nil).want(200).wantAt(object{"processed": 1.0, "failed": 1.0, "details.transformed": 0.0})
	errors, _ := answer.at("details.transmission_errors").([]any)
	if diff := cmp.Diff([]any{object{"observation_id": id, "error": "EMR unavailable (503)", "retry_at": nil}}, errors); diff != "" {
		t.Error(diff)
	}
}
