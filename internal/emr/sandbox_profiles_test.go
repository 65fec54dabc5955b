package emr_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// directly sends requests to a handler without a network, in simulated time.
type directly struct {
	handler http.Handler
	takes   time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (d directly) RoundTrip(r *http.Request) (response *http.Response, err error) {
	body := []byte{}
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	received := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), bytes.NewReader(body))
	received.Header = r.Header.Clone()
	recorder := httptest.NewRecorder()
	defer func() {
		if recover() != nil {
			response, err = nil, errors.New("the connection was closed")
		}
	}()
	d.handler.ServeHTTP(recorder, received)
	select { // a kill in the meantime loses the answer
	case <-time.After(d.takes):
		return recorder.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// arriving is an EMR at which something happens between the two steps of a round: readings are set to wait, and what is due is leased.
type arriving struct {
	*emr.Client
	do func()
}

// CanReceive implements [emr.EMR].
func (a arriving) CanReceive() bool {
	a.do()
	return a.Client.CanReceive()
}

func newProfileWorker(t *testing.T, app core.App, transport http.RoundTripper, between func()) (*emr.Worker, *emr.Client) {
	t.Helper()
	client, err := emr.New(emr.Options{
		BaseURL: "http://emr.test/fhir/demo", TokenURL: "http://emr.test/oauth/token", ClientID: "vigil", PrivateKey: sandboxSigningKey(),
		RatePerSecond: 20, ConditionalCreate: true, SearchCache: time.Minute, Now: time.Now, Transport: transport,
		Capabilities: emr.NewCapabilityStore(app), HasCopy: func(patientID, emrID string) (bool, error) { return collections.HasEMRCopy(app, patientID, emrID) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return emr.NewWorker(emr.WorkerOptions{
		EMR: arriving{client, between}, Schedule: schedule, StopTimeout: time.Nanosecond, Load: ingest.NewReadingStore(ingest.Rules{}).LoadFHIR,
		Clock: func() time.Time { return time.Now().UTC() }, Log: slog.New(slog.DiscardHandler),
		Documents: emr.DocumentOptions{Make: makeDocument, Type: fhir.DefaultDocumentType, Author: "Practice", Zone: time.UTC},
	}), client
}

// runWorker runs a worker like a process that is killed at the end.
func runWorker(t *testing.T, app core.App, transport http.RoundTripper, lifetime time.Duration) {
	t.Helper()
	w, client := newProfileWorker(t, app, transport, func() {})
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { w.Run(ctx, app) })
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Minute):
			if client.Plan().Mode == emr.ModeDocument {
				_, _ = w.QueueMonths(ctx, app, time.Now().UTC())
				_, _ = w.CorrectDocuments(app, time.Now().UTC())
			}
			_, _ = w.Sweep(ctx, app)
		}
	}
	group.Wait()
}

// Against each kind of EMR, through lost answers, server errors and kills: every reading is there once, or waits for a person with the reason, or
// waits for an EMR that receives readings. None is there twice.
func TestSandboxProfiles(t *testing.T) {
	readings := vigiltest.Rounds(1000, 120)
	for profile, test := range map[string]struct{ receives, findsCopies bool }{
		"everything": {true, true}, noIdentifierSearch: {true, true}, "documents-only": {false, false}, "nothing": {false, false},
	} {
		for _, isSearchRefused := range []bool{false, true} {
			name := profile
			if isSearchRefused {
				name += ", search refused"
			}
			t.Run(name, func(t *testing.T) {
				app := newApp(t)
				queueMany(t, app, readings)
				sandboxSigningKey()
				synctest.Test(t, func(t *testing.T) {
					simulated := playProfile(t, app, profile, isSearchRefused)
					checkProfile(t, app, simulated, readings, test.receives, test.findsCopies && (!isSearchRefused || profile == "everything"))
					if !isSearchRefused {
						checkRetractions(t, app, simulated, profile)
					}
				})
			})
		}
	}
}

func playProfile(t *testing.T, app core.App, profile string, isSearchRefused bool) *sandbox.EMR {
	t.Helper()
	keys := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(emr.JWKS(sandboxSigningKey())) })
	simulated, err := sandbox.NewEMR(sandbox.EMROptions{
		ClientID: "vigil", JWKSURL: "http://vigil.test/jwks", Client: &http.Client{Transport: directly{handler: keys}}, BaseURL: "http://emr.test", Profile: profile,
		Patients: []sandbox.EMRPatient{{ID: "erx-1", MRN: "M-1", Family: "Lovelace", Given: []string{"Ada"}, Gender: "female", BirthDate: "1955-12-10"}}, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	const creates = "POST /fhir/demo/Observation"
	if isSearchRefused {
		simulated.Fail(sandbox.Fault{Match: "GET /fhir/demo/Observation", Status: http.StatusForbidden})
		simulated.Fail(sandbox.Fault{Match: "GET /fhir/demo/DocumentReference", Status: http.StatusForbidden})
	}
	for _, f := range []sandbox.Fault{
		{Match: creates, Percent: 10, Drop: sandbox.DropAfter},
		{Match: "demo/Observation", Percent: 2, Status: http.StatusInternalServerError},
		{Match: "demo/Observation", Percent: 2, Status: http.StatusServiceUnavailable},
		{Match: creates, Percent: 1, Status: http.StatusBadGateway},
		{Match: "POST /fhir/demo/DocumentReference", Times: 2, Drop: sandbox.DropAfter},
		{Match: "demo/DocumentReference", Percent: 5, Status: http.StatusInternalServerError},
	} {
		simulated.Fail(f)
	}
	for range 6 { // killed in the middle of deliveries
		runWorker(t, app, directly{simulated, 700 * time.Millisecond}, 7*time.Second)
	}
	runWorker(t, app, directly{simulated, 20 * time.Millisecond}, 48*time.Hour)
	return simulated
}

// checkRetractions retracts readings: each is marked at the EMR, or a person must mark it, or it is never sent. None shows as before without a task.
func checkRetractions(t *testing.T, app core.App, simulated *sandbox.EMR, profile string) {
	t.Helper()
	const many = 12
	var ids []string
	if err := app.DB().NewQuery("SELECT id FROM observations ORDER BY measured_at LIMIT 12").Column(&ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		err := app.RunInTransaction(func(tx core.App) error {
			at := time.Now().UTC()
			if err := collections.SetEnteredInError(tx, id, "nurse@example.org", "a drill", 2, at); err != nil {
				return err
			}
			return emr.Retract(tx, id, patient, now, at)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	runWorker(t, app, directly{simulated, 20 * time.Millisecond}, 72*time.Hour)
	marked := 0
	for _, o := range simulated.Observations() {
		if o.Status == "entered-in-error" {
			marked++
		}
	}
	due, err := collections.CountCorrectionsDue(app)
	var stopped int
	if err == nil {
		err = app.DB().NewQuery("SELECT COUNT(*) FROM transmissions WHERE error_code = 'entered_in_error'").Row(&stopped)
	}
	want := map[string][3]int{"everything": {many, 0, 0}, noIdentifierSearch: {0, many, 0}, "documents-only": {0, 0, many}, "nothing": {0, 0, many}}[profile]
	if got := [3]int{marked, due, stopped}; err != nil || got != want {
		t.Errorf("marked, due, stopped: %v, want %v (%v)", got, want, err)
	}
}

func checkProfile(t *testing.T, app core.App, simulated *sandbox.EMR, readings int, receives, findsCopies bool) {
	t.Helper()
	var rows []struct {
		Status, Code, Next, Message, EMRID string
	}
	err := app.DB().NewQuery(`SELECT status, error_code AS code, next_retry_at AS next, error_message AS message, emr_resource_id AS emrid FROM transmissions`).All(&rows)
	if err != nil || len(rows) != readings {
		t.Fatalf("%d deliveries, %v", len(rows), err)
	}
	times := map[string]int{}
	for _, o := range simulated.Observations() {
		times[o.Effective]++
		if times[o.Effective] > 1 {
			t.Errorf("%s is there %d times", o.Effective, times[o.Effective])
		}
	}
	transmitted, forPerson, copies := 0, 0, map[string]bool{}
	for _, r := range rows {
		switch {
		case r.Status == "transmitted":
			transmitted++
			copies[r.EMRID] = true
		case r.Status == "failed" && r.Code == emr.CodeOutcomeUnknown && r.Next == "" && r.Message != "":
			forPerson++
		case r.Status != "pending" || receives:
			t.Errorf("%+v", r)
		}
	}
	if !receives {
		if transmitted+forPerson+len(times) > 0 {
			t.Errorf("%d transmitted, %d for a person, %d at the EMR", transmitted, forPerson, len(times))
		}
		return
	}
	if len(copies) != transmitted || transmitted > len(times) || transmitted+forPerson != readings || (forPerson > 0) == findsCopies {
		t.Errorf("%d transmitted with %d ids, %d for a person, %d at the EMR, of %d", transmitted, len(copies), forPerson, len(times), readings)
	}
}
