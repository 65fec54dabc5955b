package emr_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var now = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

const (
	patient         = "0194c5a8-0000-7000-8000-000000000001"
	unlinkedPatient = "0194c5a8-0000-7000-8000-000000000002" // without an EMR id
)

// newApp returns an app with one patient linked to the EMR and one who is not.
func newApp(t testing.TB) *tests.TestApp {
	t.Helper()
	app := vigiltest.NewApp(t)
	insert(t, app, collections.Patients, dbx.Params{"id": patient, "mrn": "M-1", "external_id": "erx-1"})
	insert(t, app, collections.Patients, dbx.Params{"id": unlinkedPatient, "mrn": "M-2"})
	return app
}

func insert(t testing.TB, app core.App, collection string, row dbx.Params) {
	t.Helper()
	if _, err := app.DB().Insert(collection, row).Execute(); err != nil {
		t.Fatal(err)
	}
}

// queueDelivery stores an observation of a patient and its delivery.
func queueDelivery(t testing.TB, app core.App, patientID string, at time.Time) (transmission, observation string) {
	t.Helper()
	observation = collections.NewUUID()
	insert(t, app, collections.Observations, dbx.Params{
		"id": observation, "patient": patientID, "observation_type": "weight",
		"fhir_status": "pending",
	})
	transmission, err := emr.Queue(app,
		emr.Draft{ObservationID: observation, PatientID: patientID, ObservationType: "weight"}, at)
	if err != nil {
		t.Fatal(err)
	}
	return transmission, observation
}

// check compares columns of a record.
func check(t testing.TB, app core.App, collection, id string, want map[string]any) {
	t.Helper()
	record, err := app.FindRecordById(collection, id)
	if err != nil {
		t.Fatal(err)
	}
	for column, value := range want {
		if got := record.Get(column); got != value {
			t.Errorf("%s.%s is %v, want %v", collection, column, got, value)
		}
	}
}

// stubEMR answers as configured, and records what it received.
type stubEMR struct {
	emr.EMR         // the methods of documents, which tests with this EMR do not use
	mu              sync.Mutex
	isUnconfigured  bool
	receivesNothing bool
	refuse          func(observationID string, sends int) *emr.Error // nil: accepts everything
	stored          map[string]string                                // EMR ids by observation
	sends           map[string]int
	searches        map[string]int
	onSend          func(observationID string)
	searchErr       *emr.Error
	probeErr        *emr.Error // the result of a probe; nil: reachable
	probes          int
	body            []byte
	updates         []emrUpdate
	hasCopy         bool   // the copy has the last update
	onSearch        func() // called before a search is answered
}

func newEMR() *stubEMR {
	return &stubEMR{stored: map[string]string{}, sends: map[string]int{}, searches: map[string]int{}}
}

func (e *stubEMR) Configured() bool { return !e.isUnconfigured }

func (e *stubEMR) Prepare(context.Context) {}

func (e *stubEMR) TakesDocuments() bool { return true }

func (e *stubEMR) CanReceive() bool { e.mu.Lock(); defer e.mu.Unlock(); return !e.receivesNothing }

func (e *stubEMR) TakesReadings() bool { return e.CanReceive() }

func (e *stubEMR) CreateObservation(_ context.Context, observationID string, resource []byte, requestID string) (emr.Created, error) {
	e.mu.Lock()
	e.sends[observationID]++
	sends, onSend := e.sends[observationID], e.onSend
	e.body = resource
	e.mu.Unlock()
	if onSend != nil {
		onSend(observationID)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse != nil {
		if refusal := e.refuse(observationID, sends); refusal != nil {
			refusal.Attempts = []emr.Attempt{{Started: time.Second, Took: 20 * time.Millisecond, Status: refusal.Status, RequestID: requestID, Code: refusal.Code}}
			return emr.Created{}, refusal
		}
	}
	id := fmt.Sprintf("emr-%s-%d", observationID, sends)
	e.stored[observationID] = id
	return emr.Created{EMRID: id, Attempts: []emr.Attempt{{Took: 50 * time.Millisecond, Status: 201, RequestID: requestID}}}, nil
}

func (e *stubEMR) FindObservation(_ context.Context, observationID string, _ []byte) (string, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.searches[observationID]++
	if e.onSearch != nil {
		e.onSearch()
	}
	if e.searchErr != nil {
		return "", false, e.searchErr
	}
	id, found := e.stored[observationID]
	return id, found, nil
}

func (e *stubEMR) Probe(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.probes++
	if e.probeErr != nil {
		return e.probeErr
	}
	return nil
}

func (e *stubEMR) LookUpObservation(ctx context.Context, observationID string, resource []byte) (string, bool, error) {
	return e.FindObservation(ctx, observationID, resource)
}

func (e *stubEMR) UpdateObservation(_ context.Context, emrID string, resource []byte, requestID string, ambiguous bool) (emr.Created, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, emrUpdate{emrID, string(resource), ambiguous})
	if e.refuse != nil {
		if refusal := e.refuse(emrID, len(e.updates)); refusal != nil {
			return emr.Created{}, refusal
		}
	}
	return emr.Created{EMRID: emrID, Attempts: []emr.Attempt{{Took: 50 * time.Millisecond, Status: 200, RequestID: requestID}}}, nil
}

func (e *stubEMR) HasObservation(context.Context, string, []byte) (hasContent, isKnown bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.searchErr != nil {
		return false, false, e.searchErr
	}
	return e.hasCopy, true, nil
}

// emrUpdate is an update that the EMR received.
type emrUpdate struct {
	emrID, resource string
	ambiguous       bool
}

func unavailable() *emr.Error {
	return &emr.Error{Code: emr.CodeUnavailable, Status: 503, Message: "EMR unavailable (503)", Ambiguous: true}
}

func invalid() *emr.Error {
	return &emr.Error{Code: emr.CodeInvalidResource, Status: 422, Message: "Invalid FHIR resource: required", Diagnostics: phi.Text("Ada is missing")}
}

// manualClock is a clock that tests advance.
type manualClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *manualClock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *manualClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

func newWorker(f *stubEMR, clock *manualClock, change func(*emr.WorkerOptions)) *emr.Worker {
	options := emr.WorkerOptions{
		EMR: f, Schedule: schedule, Clock: clock.now, Log: slog.New(slog.DiscardHandler),
		Jitter: func() float64 { return 0 },
		Load: func(_ core.App, id string) (fhir.StoredObservation, error) {
			return fhir.StoredObservation{ID: id, PatientID: patient, Reading: vitals.Reading{Kind: vitals.Weight, MeasuredAt: now}.With(vitals.WeightKg, 80.0)}, nil
		},
	}
	if change != nil {
		change(&options)
	}
	return emr.NewWorker(options)
}

func sendDue(t testing.TB, w *emr.Worker, app core.App, limit int) emr.SendCounts {
	t.Helper()
	round, err := w.SendDue(t.Context(), app, limit)
	if err != nil {
		t.Fatal(err)
	}
	return round
}
