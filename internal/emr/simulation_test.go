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
func (h *simulatedEMR) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	h.mu.Lock()
	state := h.state(time.Now())
	entry := simulatedRequest{line: r.Method + " " + r.URL.Path, at: time.Now()}
	if r.URL.Path != "/token" {
		entry.observation = identifier(body)
	}
	h.requests = append(h.requests, entry)
	h.mu.Unlock()
	if state == hanging {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if state == unplugged {
		return nil, errors.New("connection refused")
	}
	select {
	case <-time.After(h.slow):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answer(r, body, state), nil
}

func (h *simulatedEMR) answer(r *http.Request, body []byte, state failureMode) *http.Response {
	write := r.Method != http.MethodGet && r.URL.Path != "/token"
	switch {
	case state == broken, state == readOnly && write:
		return h.respond(http.StatusServiceUnavailable, "", "Retry-After", h.retryAfter)
	case state == throttle && r.URL.Path != "/token":
		return h.respond(http.StatusTooManyRequests, "", "Retry-After", h.retryAfter)
	case state == locked && r.URL.Path == "/token":
		return h.respond(http.StatusUnauthorized, `{"error":"invalid_client"}`, "Content-Type", "application/json")
	case state == locked, state == expired && r.URL.Path != "/token":
		return h.respond(http.StatusUnauthorized, "")
	case r.URL.Path == "/token":
		return h.respond(http.StatusOK, `{"access_token":"t","token_type":"bearer","expires_in":3600}`, "Content-Type", "application/json")
	case r.URL.Path == "/fhir/metadata":
		return h.respond(http.StatusOK, simulatedStatement)
	case r.Method == http.MethodGet:
		return h.search(r)
	}
	id := identifier(body)
	if status := h.poison[id]; status != 0 {
		return h.respond(status, "")
	}
	var resource struct{ Status string }
	_ = json.Unmarshal(body, &resource)
	h.arrived = append(h.arrived, arrival{id, resource.Status, time.Now()})
	if r.Method == http.MethodPut {
		return h.respond(http.StatusOK, "")
	}
	h.stored[id]++
	h.idOf[id] = fmt.Sprintf("o-%d", len(h.idOf))
	return h.respond(http.StatusCreated, "", "Location", "http://emr.test/fhir/Observation/"+h.idOf[id]+"/_history/1")
}

func (h *simulatedEMR) search(r *http.Request) *http.Response {
	_, id, _ := strings.Cut(r.URL.Query().Get("identifier"), "urn:uuid:")
	entry := ""
	if emrID := h.idOf[id]; emrID != "" {
		entry = fmt.Sprintf(`{"resource":{"resourceType":"Observation","id":%q,"identifier":[{"system":"urn:ietf:rfc:3986","value":"urn:uuid:%s"}]}}`, emrID, id)
	}
	return h.respond(http.StatusOK, `{"resourceType":"Bundle","entry":[`+entry+`]}`)
}

func (h *simulatedEMR) respond(status int, body string, header ...string) *http.Response {
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
func (h *simulatedEMR) countRequests(prefix string, since time.Time) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.requests {
		if strings.HasPrefix(r.line, prefix) && !r.at.Before(since) {
			n++
		}
	}
	return n
}

// set changes the EMR while requests are under way.
func (h *simulatedEMR) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// writes returns the writes that arrived so far, and requestLog all requests.
func (h *simulatedEMR) writes() (list []arrival) {
	h.set(func() { list = slices.Clone(h.arrived) })
	return list
}

func (h *simulatedEMR) requestLog() (list []simulatedRequest) {
	h.set(func() { list = slices.Clone(h.requests) })
	return list
}

// storedCount returns how often the EMR stored an observation.
func (h *simulatedEMR) storedCount(observation string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stored[observation]
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
func (w *simulation) start() {
	w.t.Helper()
	w.stop()
	client, err := emr.New(emr.Options{
		BaseURL: "http://emr.test/fhir", TokenURL: "http://emr.test/token", ClientID: "vigil", PrivateKey: sandboxSigningKey(),
		RatePerSecond: 10, ConditionalCreate: true, Capabilities: offersAll(), Now: time.Now, Transport: w.server,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.worker = emr.NewWorker(emr.WorkerOptions{
		EMR: client, Schedule: schedule, ProbeInterval: 15 * time.Second, Load: ingest.NewReadingStore(ingest.Rules{}).LoadFHIR,
		Clock: func() time.Time { return time.Now().UTC() }, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	var group sync.WaitGroup
	group.Go(func() { w.worker.Run(ctx, w) })
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Minute):
			}
			if _, err := w.worker.Sweep(ctx, w); err != nil && ctx.Err() == nil {
				w.t.Error(err)
			}
		}
	})
	w.stop = func() { cancel(); group.Wait(); w.stop = func() {} }
}

// addReading stores a reading of a patient, measured some time ago.
func (w *simulation) addReading(patient int, ago time.Duration) (observation string) {
	w.t.Helper()
	observation = collections.NewUUID()
	at := time.Now().UTC()
	insert(w.t, w, collections.Observations, dbx.Params{
		"id": observation, "patient": patientID(patient), "observation_type": "weight", "measured_at": collections.Instant(at.Add(-ago)), "weight_kg": 80.25,
		"status": "final", "source": "gateway", "fhir_status": "pending", "fhir_version": 1,
		"created_at": collections.Instant(at), "updated_at": collections.Instant(at),
	})
	draft := emr.Draft{ObservationID: observation, PatientID: patientID(patient), ObservationType: "weight"}
	if _, err := emr.Queue(w, draft, at); err != nil {
		w.t.Fatal(err)
	}
	w.measured[observation], w.patientOf[observation] = at.Add(-ago), patientID(patient)
	w.worker.Wake()
	return observation
}

// retract marks a reading as entered in error, as a person does.
func (w *simulation) retract(observation string) {
	w.t.Helper()
	if _, err := w.DB().Update(collections.Observations, dbx.Params{"status": "entered_in_error"}, dbx.HashExp{"id": observation}).Execute(); err != nil {
		w.t.Fatal(err)
	}
	if err := emr.Retract(w, observation, w.patientOf[observation], w.measured[observation], time.Now().UTC()); err != nil {
		w.t.Fatal(err)
	}
	w.worker.Wake()
}

// row is the state of a delivery.
type row struct {
	Status      string `db:"status"`
	Attempts    int    `db:"attempt_count"`
	Next        string `db:"next_retry_at"`
	Code        string `db:"error_code"`
	WaitsForEMR bool   `db:"waits_for_line"`
}

func (w *simulation) row(observation string) (r row) {
	w.t.Helper()
	err := w.DB().NewQuery(`SELECT status, attempt_count, next_retry_at, error_code, waits_for_line FROM transmissions WHERE observation = {:id}`).
		Bind(dbx.Params{"id": observation}).One(&r)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// tally counts the deliveries by status, and returns the most attempts of any.
func (w *simulation) tally() (statuses map[string]int, most int) {
	w.t.Helper()
	var rows []row
	err := w.DB().NewQuery(`SELECT status, attempt_count, next_retry_at, error_code, waits_for_line FROM transmissions`).All(&rows)
	if err != nil {
		w.t.Fatal(err)
	}
	statuses = map[string]int{}
	for _, r := range rows {
		statuses[r.Status]++
		most = max(most, r.Attempts)
	}
	return statuses, most
}

// announcementKeys returns the keys of the announcements, oldest first.
func (w *simulation) announcementKeys() (keys []string) {
	w.t.Helper()
	if err := w.DB().NewQuery(`SELECT key FROM announcements ORDER BY created_at, id`).Column(&keys); err != nil {
		w.t.Fatal(err)
	}
	return keys
}

// checkStoredOnce checks that the EMR stored every reading exactly once, and those of each patient since a time in order of measurement.
func (w *simulation) checkStoredOnce(since time.Time) {
	w.t.Helper()
	last := map[string]arrival{}
	for id := range w.measured {
		if n := w.server.storedCount(id); n != 1 {
			w.t.Errorf("%s was stored %d times: %+v", id, n, w.row(id))
		}
	}
	for _, a := range w.server.writes() {
		if a.at.Before(since) {
			continue
		}
		patient := w.patientOf[a.observation]
		if before, ok := last[patient]; ok && w.measured[a.observation].Before(w.measured[before.observation]) {
			w.t.Errorf("of %s, measured at %s arrived after %s", patient, w.measured[a.observation], w.measured[before.observation])
		}
		last[patient] = a
	}
}
