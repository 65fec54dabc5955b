package emr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/ingest"
)

// failureMode is how every request to the simulated EMR fails.
type failureMode string

const (
	healthy   failureMode = ""
	unplugged failureMode = "no connection"
	broken    failureMode = "503"
	locked    failureMode = "token refused"
	expired   failureMode = "401 for all but tokens"
	hanging   failureMode = "no answer"
	throttle  failureMode = "429"
	readOnly  failureMode = "503 for what is written"
)

// simulatedEMR is an EMR without a network, in the simulated time of a test.
type simulatedEMR struct {
	mu     sync.Mutex
	state  func(time.Time) failureMode
	poison map[string]int // by observation: the status that it is refused with, always
	// retryAfter is sent with 429 and 503, in seconds; "" for none.
	retryAfter string
	slow       time.Duration

	idOf     map[string]string // EMR ids by observation
	stored   map[string]int    // how often each was stored
	arrived  []arrival
	requests []simulatedRequest
}

const simulatedStatement = `{"resourceType":"CapabilityStatement","fhirVersion":"4.0.1","rest":[{"mode":"server","resource":[
	{"type":"Observation","interaction":[{"code":"create"},{"code":"search-type"}],"conditionalCreate":true,"searchParam":[{"name":"identifier"}]}]}]}`

type arrival struct {
	observation, status string
	at                  time.Time
}

type simulatedRequest struct {
	line        string // method and path
	at          time.Time
	observation string // the observation in the body
}

func newSimulatedEMR() *simulatedEMR {
	return &simulatedEMR{
		state: func(time.Time) failureMode { return healthy }, poison: map[string]int{}, idOf: map[string]string{}, stored: map[string]int{},
		slow: 20 * time.Millisecond,
	}
}

// RoundTrip implements [http.RoundTripper].
func (e *simulatedEMR) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	e.mu.Lock()
	state := e.state(time.Now())
	entry := simulatedRequest{line: r.Method + " " + r.URL.Path, at: time.Now()}
	if r.URL.Path != "/token" {
		entry.observation = identifier(body)
	}
	e.requests = append(e.requests, entry)
	e.mu.Unlock()
	if state == hanging {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if state == unplugged {
		return nil, errors.New("connection refused")
	}
	select {
	case <-time.After(e.slow):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answer(r, body, state), nil
}

func (e *simulatedEMR) answer(r *http.Request, body []byte, state failureMode) *http.Response {
	write := r.Method != http.MethodGet && r.URL.Path != "/token"
	switch {
	case state == broken, state == readOnly && write:
		return e.respond(http.StatusServiceUnavailable, "", "Retry-After", e.retryAfter)
	case state == throttle && r.URL.Path != "/token":
		return e.respond(http.StatusTooManyRequests, "", "Retry-After", e.retryAfter)
	case state == locked && r.URL.Path == "/token":
		return e.respond(http.StatusUnauthorized, `{"error":"invalid_client"}`, "Content-Type", "application/json")
	case state == locked, state == expired && r.URL.Path != "/token":
		return e.respond(http.StatusUnauthorized, "")
	case r.URL.Path == "/token":
		return e.respond(http.StatusOK, `{"access_token":"t","token_type":"bearer","expires_in":3600}`, "Content-Type", "application/json")
	case r.URL.Path == "/fhir/metadata":
		return e.respond(http.StatusOK, simulatedStatement)
	case r.Method == http.MethodGet:
		return e.search(r)
	}
	id := identifier(body)
	if status := e.poison[id]; status != 0 {
		return e.respond(status, "")
	}
	var resource struct{ Status string }
	_ = json.Unmarshal(body, &resource)
	e.arrived = append(e.arrived, arrival{id, resource.Status, time.Now()})
	if r.Method == http.MethodPut {
		return e.respond(http.StatusOK, "")
	}
	e.stored[id]++
	e.idOf[id] = fmt.Sprintf("o-%d", len(e.idOf))
	return e.respond(http.StatusCreated, "", "Location", "http://emr.test/fhir/Observation/"+e.idOf[id]+"/_history/1")
}

func (e *simulatedEMR) search(r *http.Request) *http.Response {
	_, id, _ := strings.Cut(r.URL.Query().Get("identifier"), "urn:uuid:")
	entry := ""
	if emrID := e.idOf[id]; emrID != "" {
		entry = fmt.Sprintf(`{"resource":{"resourceType":"Observation","id":%q,"identifier":[{"system":"urn:ietf:rfc:3986","value":"urn:uuid:%s"}]}}`, emrID, id)
	}
	return e.respond(http.StatusOK, `{"resourceType":"Bundle","entry":[`+entry+`]}`)
}

func (e *simulatedEMR) respond(status int, body string, header ...string) *http.Response {
	answer := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			answer.Header.Set(header[i], header[i+1])
		}
	}
	return answer
}

// identifier returns the UUID in a resource's identifier.
func identifier(body []byte) string {
	var resource struct{ Identifier []struct{ Value string } }
	if json.Unmarshal(body, &resource) != nil || len(resource.Identifier) == 0 {
		return ""
	}
	return strings.TrimPrefix(resource.Identifier[0].Value, "urn:uuid:")
}

// countRequests counts the requests since a time by the start of their method and path.
func (e *simulatedEMR) countRequests(prefix string, since time.Time) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.requests {
		if strings.HasPrefix(r.line, prefix) && !r.at.Before(since) {
			n++
		}
	}
	return n
}

// set changes the EMR while requests are under way.
func (e *simulatedEMR) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// writes returns the writes that arrived so far, and requestLog all requests.
func (e *simulatedEMR) writes() (list []arrival) {
	e.set(func() { list = slices.Clone(e.arrived) })
	return list
}

func (e *simulatedEMR) requestLog() (list []simulatedRequest) {
	e.set(func() { list = slices.Clone(e.requests) })
	return list
}

// storedCount returns how often the EMR stored an observation.
func (e *simulatedEMR) storedCount(observation string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stored[observation]
}

// simulation is a practice and its EMR, in the time of a synctest bubble.
type simulation struct {
	*tests.TestApp
	t         *testing.T
	server    *simulatedEMR
	worker    *emr.Worker
	measured  map[string]time.Time
	patientOf map[string]string
	stop      func()
}

// newSimulation creates a practice with patients, and starts its worker.
func newSimulation(t *testing.T, app *tests.TestApp, patients int) *simulation {
	w := &simulation{TestApp: app, t: t, server: newSimulatedEMR(), measured: map[string]time.Time{}, patientOf: map[string]string{}, stop: func() {}}
	for i := range patients {
		insert(t, w, collections.Patients, dbx.Params{"id": patientID(i), "mrn": fmt.Sprintf("M-%d", i), "external_id": fmt.Sprintf("erx-%d", i)})
	}
	w.start()
	return w
}

func patientID(i int) string { return fmt.Sprintf("0194c5a8-0000-7000-8000-%012d", i) }

// start starts a worker like a new process, after the previous one has ended.
func (s *simulation) start() {
	s.t.Helper()
	s.stop()
	client, err := emr.New(emr.Options{
		BaseURL: "http://emr.test/fhir", TokenURL: "http://emr.test/token", ClientID: "vigil", PrivateKey: sandboxSigningKey(),
		RatePerSecond: 10, ConditionalCreate: true, Capabilities: offersAll(), Now: time.Now, Transport: s.server,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.worker = emr.NewWorker(emr.WorkerOptions{
		EMR: client, Schedule: schedule, ProbeInterval: 15 * time.Second, Load: ingest.NewReadingStore(ingest.Rules{}).LoadFHIR,
		Clock: func() time.Time { return time.Now().UTC() }, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(s.t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.worker.Run(ctx, s) })
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Minute):
			}
			if _, err := s.worker.Sweep(ctx, s); err != nil && ctx.Err() == nil {
				s.t.Error(err)
			}
		}
	})
	s.stop = func() { cancel(); group.Wait(); s.stop = func() {} }
}

// addReading stores a reading of a patient, measured some time ago.
func (s *simulation) addReading(patient int, ago time.Duration) (observation string) {
	s.t.Helper()
	observation = collections.NewUUID()
	at := time.Now().UTC()
	insert(s.t, s, collections.Observations, dbx.Params{
		"id": observation, "patient": patientID(patient), "observation_type": "weight", "measured_at": collections.FormatInstant(at.Add(-ago)), "weight_kg": 80.25,
		"status": "final", "source": "gateway", "fhir_status": "pending", "fhir_version": 1,
		"created_at": collections.FormatInstant(at), "updated_at": collections.FormatInstant(at),
	})
	draft := emr.Draft{ObservationID: observation, PatientID: patientID(patient), ObservationType: "weight"}
	if _, err := emr.Queue(s, draft, at); err != nil {
		s.t.Fatal(err)
	}
	s.measured[observation], s.patientOf[observation] = at.Add(-ago), patientID(patient)
	s.worker.Wake()
	return observation
}

// retract marks a reading as entered in error, as a person does.
func (s *simulation) retract(observation string) {
	s.t.Helper()
	if _, err := s.DB().Update(collections.Observations, dbx.Params{"status": "entered_in_error"}, dbx.HashExp{"id": observation}).Execute(); err != nil {
		s.t.Fatal(err)
	}
	if err := emr.Retract(s, observation, s.patientOf[observation], s.measured[observation], time.Now().UTC()); err != nil {
		s.t.Fatal(err)
	}
	s.worker.Wake()
}

// row is the state of a delivery.
type row struct {
	Status      string `db:"status"`
	Attempts    int    `db:"attempt_count"`
	Next        string `db:"next_retry_at"`
	Code        string `db:"error_code"`
	WaitsForEMR bool   `db:"waits_for_line"`
}

func (s *simulation) row(observation string) (r row) {
	s.t.Helper()
	err := s.DB().NewQuery(`SELECT status, attempt_count, next_retry_at, error_code, waits_for_line FROM transmissions WHERE observation = {:id}`).
		Bind(dbx.Params{"id": observation}).One(&r)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// tally counts the deliveries by status, and returns the most attempts of any.
func (s *simulation) tally() (statuses map[string]int, most int) {
	s.t.Helper()
	var rows []row
	err := s.DB().NewQuery(`SELECT status, attempt_count, next_retry_at, error_code, waits_for_line FROM transmissions`).All(&rows)
	if err != nil {
		s.t.Fatal(err)
	}
	statuses = map[string]int{}
	for _, r := range rows {
		statuses[r.Status]++
		most = max(most, r.Attempts)
	}
	return statuses, most
}

// announcementKeys returns the keys of the announcements, oldest first.
func (s *simulation) announcementKeys() (keys []string) {
	s.t.Helper()
	if err := s.DB().NewQuery(`SELECT key FROM announcements ORDER BY created_at, id`).Column(&keys); err != nil {
		s.t.Fatal(err)
	}
	return keys
}

// checkStoredOnce checks that the EMR stored every reading exactly once, and those of each patient since a time in order of measurement.
func (s *simulation) checkStoredOnce(since time.Time) {
	s.t.Helper()
	last := map[string]arrival{}
	for id := range s.measured {
		if n := s.server.storedCount(id); n != 1 {
			s.t.Errorf("%s was stored %d times: %+v", id, n, s.row(id))
		}
	}
	for _, a := range s.server.writes() {
		if a.at.Before(since) {
			continue
		}
		patient := s.patientOf[a.observation]
		if before, ok := last[patient]; ok && s.measured[a.observation].Before(s.measured[before.observation]) {
			s.t.Errorf("of %s, measured at %s arrived after %s", patient, s.measured[a.observation], s.measured[before.observation])
		}
		last[patient] = a
	}
}
