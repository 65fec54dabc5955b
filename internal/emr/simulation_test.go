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

// trouble of a hospital: what goes wrong with everything that is asked of it.
type ailment string

const (
	well      ailment = ""
	unplugged ailment = "no connection"
	broken    ailment = "503"
	locked    ailment = "token refused"
	expired   ailment = "401 for all but tokens"
	hanging   ailment = "no answer"
	throttle  ailment = "429"
	readOnly  ailment = "503 for what is written"
)

// hospital is an EMR without a network: it carries the requests of a client in a test's own time.
type hospital struct {
	lock   sync.Mutex
	state  func(time.Time) ailment
	poison map[string]int // statuses by observation, for ever
	// retryAfter goes along with 429 and 503, in seconds; "" for none.
	retryAfter string
	slow       time.Duration

	held     map[string]string // EMR ids by observation
	stored   map[string]int    // how often each was stored
	arrived  []arrival
	requests []request
}

type arrival struct {
	observation, status string
	at                  time.Time
}

type request struct {
	what string // method and path
	at   time.Time
	of   string // the observation, of what is written
}

func newHospital() *hospital {
	return &hospital{
		state: func(time.Time) ailment { return well }, poison: map[string]int{}, held: map[string]string{}, stored: map[string]int{},
		slow: 20 * time.Millisecond,
	}
}

// RoundTrip implements [http.RoundTripper].
func (h *hospital) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	h.lock.Lock()
	state := h.state(time.Now())
	entry := request{what: r.Method + " " + r.URL.Path, at: time.Now()}
	if r.URL.Path != "/token" {
		entry.of = identifier(body)
	}
	h.requests = append(h.requests, entry)
	h.lock.Unlock()
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
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.answer(r, body, state), nil
}

func (h *hospital) answer(r *http.Request, body []byte, state ailment) *http.Response {
	write := r.Method != http.MethodGet && r.URL.Path != "/token"
	switch {
	case state == broken, state == readOnly && write:
		return h.say(http.StatusServiceUnavailable, "", "Retry-After", h.retryAfter)
	case state == throttle && r.URL.Path != "/token":
		return h.say(http.StatusTooManyRequests, "", "Retry-After", h.retryAfter)
	case state == locked && r.URL.Path == "/token":
		return h.say(http.StatusUnauthorized, `{"error":"invalid_client"}`, "Content-Type", "application/json")
	case state == locked, state == expired && r.URL.Path != "/token":
		return h.say(http.StatusUnauthorized, "")
	case r.URL.Path == "/token":
		return h.say(http.StatusOK, `{"access_token":"t","token_type":"bearer","expires_in":3600}`, "Content-Type", "application/json")
	case r.URL.Path == "/fhir/metadata":
		return h.say(http.StatusOK, `{"resourceType":"CapabilityStatement","fhirVersion":"4.0.1"}`)
	case r.Method == http.MethodGet:
		return h.search(r)
	}
	id := identifier(body)
	if status := h.poison[id]; status != 0 {
		return h.say(status, "")
	}
	var resource struct{ Status string }
	_ = json.Unmarshal(body, &resource)
	h.arrived = append(h.arrived, arrival{id, resource.Status, time.Now()})
	if r.Method == http.MethodPut {
		return h.say(http.StatusOK, "")
	}
	h.stored[id]++
	h.held[id] = fmt.Sprintf("o-%d", len(h.held))
	return h.say(http.StatusCreated, "", "Location", "http://emr.test/fhir/Observation/"+h.held[id]+"/_history/1")
}

func (h *hospital) search(r *http.Request) *http.Response {
	_, id, _ := strings.Cut(r.URL.Query().Get("identifier"), "urn:uuid:")
	entry := ""
	if emrID := h.held[id]; emrID != "" {
		entry = fmt.Sprintf(`{"resource":{"resourceType":"Observation","id":%q,"identifier":[{"system":"urn:ietf:rfc:3986","value":"urn:uuid:%s"}]}}`, emrID, id)
	}
	return h.say(http.StatusOK, `{"resourceType":"Bundle","entry":[`+entry+`]}`)
}

func (h *hospital) say(status int, body string, header ...string) *http.Response {
	answer := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			answer.Header.Set(header[i], header[i+1])
		}
	}
	return answer
}

// identifier is the UUID under which a resource was made.
func identifier(body []byte) string {
	var resource struct{ Identifier []struct{ Value string } }
	if json.Unmarshal(body, &resource) != nil || len(resource.Identifier) == 0 {
		return ""
	}
	return strings.TrimPrefix(resource.Identifier[0].Value, "urn:uuid:")
}

// count counts the requests since a time whose method and path begin so.
func (h *hospital) count(what string, since time.Time) (n int) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, r := range h.requests {
		if strings.HasPrefix(r.what, what) && !r.at.Before(since) {
			n++
		}
	}
	return n
}

// set changes how the EMR is while requests are under way.
func (h *hospital) set(change func()) {
	h.lock.Lock()
	defer h.lock.Unlock()
	change()
}

// came are the writes that arrived, and asked all requests, so far.
func (h *hospital) came() (list []arrival) {
	h.set(func() { list = slices.Clone(h.arrived) })
	return list
}

func (h *hospital) asked() (list []request) {
	h.set(func() { list = slices.Clone(h.requests) })
	return list
}

// has reports how often the EMR stored an observation.
func (h *hospital) has(observation string) int {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.stored[observation]
}

// ward is a practice beside a hospital, in the time of a synctest bubble.
type ward struct {
	*tests.TestApp
	t        *testing.T
	hospital *hospital
	worker   *emr.Worker
	measured map[string]time.Time
	whose    map[string]string
	stop     func()
}

// newWard opens a practice of some patients, whose worker runs.
func newWard(t *testing.T, app *tests.TestApp, patients int) *ward {
	w := &ward{TestApp: app, t: t, hospital: newHospital(), measured: map[string]time.Time{}, whose: map[string]string{}, stop: func() {}}
	for i := range patients {
		insert(t, w, collections.Patients, dbx.Params{"id": patientID(i), "mrn": fmt.Sprintf("M-%d", i), "external_id": fmt.Sprintf("erx-%d", i)})
	}
	w.start()
	return w
}

func patientID(i int) string { return fmt.Sprintf("0194c5a8-0000-7000-8000-%012d", i) }

// start begins a worker as a process does; its predecessor has ended.
func (w *ward) start() {
	w.t.Helper()
	w.stop()
	client, err := emr.New(emr.Options{
		BaseURL: "http://emr.test/fhir", TokenURL: "http://emr.test/token", ClientID: "vigil", PrivateKey: sandboxSigningKey(),
		RatePerSecond: 10, ConditionalCreate: true, Now: time.Now, Transport: w.hospital,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.worker = emr.NewWorker(emr.WorkerOptions{
		EMR: client, Schedule: schedule, ProbeInterval: 15 * time.Second, Load: ingest.NewEvaluator(ingest.Rules{}).LoadFHIR,
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

// read stores a reading of a patient, measured some time ago.
func (w *ward) read(patient int, ago time.Duration) (observation string) {
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
	w.measured[observation], w.whose[observation] = at.Add(-ago), patientID(patient)
	w.worker.Wake()
	return observation
}

// withdraw takes a reading back, as a person does.
func (w *ward) withdraw(observation string) {
	w.t.Helper()
	if _, err := w.DB().Update(collections.Observations, dbx.Params{"status": "entered_in_error"}, dbx.HashExp{"id": observation}).Execute(); err != nil {
		w.t.Fatal(err)
	}
	if err := emr.Withdraw(w, observation, w.whose[observation], w.measured[observation], time.Now().UTC()); err != nil {
		w.t.Fatal(err)
	}
	w.worker.Wake()
}

// row is how the transmission of an observation stands.
type row struct {
	Status   string `db:"status"`
	Attempts int    `db:"attempt_count"`
	Next     string `db:"next_retry_at"`
	Code     string `db:"error_code"`
	Held     bool   `db:"waits_for_line"`
}

func (w *ward) row(observation string) (r row) {
	w.t.Helper()
	err := w.DB().NewQuery(`SELECT status, attempt_count, next_retry_at, error_code, waits_for_line FROM transmissions WHERE observation = {:id}`).
		Bind(dbx.Params{"id": observation}).One(&r)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// tally counts the transmissions by status, and the most attempts of any.
func (w *ward) tally() (statuses map[string]int, most int) {
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

// told lists the keys of what people are to hear, oldest first.
func (w *ward) told() (keys []string) {
	w.t.Helper()
	if err := w.DB().NewQuery(`SELECT key FROM announcements ORDER BY created_at, id`).Column(&keys); err != nil {
		w.t.Fatal(err)
	}
	return keys
}

// once checks that the EMR has every reading exactly once, and that of each patient what arrived since a time came in order of measurement.
func (w *ward) once(since time.Time) {
	w.t.Helper()
	last := map[string]arrival{}
	for id := range w.measured {
		if n := w.hospital.has(id); n != 1 {
			w.t.Errorf("%s was stored %d times: %+v", id, n, w.row(id))
		}
	}
	for _, a := range w.hospital.came() {
		if a.at.Before(since) {
			continue
		}
		patient := w.whose[a.observation]
		if before, ok := last[patient]; ok && w.measured[a.observation].Before(w.measured[before.observation]) {
			w.t.Errorf("of %s, measured at %s arrived after %s", patient, w.measured[a.observation], w.measured[before.observation])
		}
		last[patient] = a
	}
}
