package emr_test

import (
	"crypto/rand"
	"crypto/rsa"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

var sandboxSigningKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func wallClock() time.Time { return time.Now().UTC() }

// sandboxEMR is the EMR sandbox at a real address, with injected faults.
type sandboxEMR struct {
	emr *sandbox.EMR
	url string
}

// newSandboxEMR serves the sandbox; between, if given, wraps its handler.
func newSandboxEMR(t testing.TB, key *rsa.PublicKey, stored func(), between func(next http.Handler) http.Handler, changes ...func(*sandbox.EMROptions)) *sandboxEMR {
	t.Helper()
	jwks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(emr.JWKS(&rsa.PrivateKey{PublicKey: *key}))
	}))
	t.Cleanup(jwks.Close)
	options := sandbox.EMROptions{
		ClientID: "vigil", JWKSURL: jwks.URL, Now: wallClock,
		Patients:      []sandbox.EMRPatient{{ID: "erx-1", MRN: "M-1", Family: "Lovelace", Given: []string{"Ada"}, Gender: "female", BirthDate: "1955-12-10"}},
		OnObservation: func(sandbox.StoredObservation) { stored() },
	}
	for _, change := range changes {
		change(&options)
	}
	simulated, err := sandbox.NewEMR(options)
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler = simulated
	if between != nil {
		handler = between(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &sandboxEMR{simulated, server.URL}
}

// sandboxClient returns a client for the sandbox at an address, without pacing.
func sandboxClient(url string, key *rsa.PrivateKey, conditional bool, cache ...time.Duration) (*emr.Client, error) {
	options := emr.Options{
		BaseURL: url + "/fhir/demo", TokenURL: url + "/oauth/token", ClientID: "vigil", PrivateKey: key,
		QuickRetryDelays: []time.Duration{time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond},
		Timeout:          time.Minute, ConditionalCreate: conditional, Now: wallClock,
	}
	for _, keeps := range cache {
		options.SearchCache = keeps
	}
	return emr.New(options)
}

// sandboxClientWith is sandboxClient with conditional create on, no search cache, and changes.
func sandboxClientWith(t *testing.T, url string, changes ...func(*emr.Options)) *emr.Client {
	t.Helper()
	o := emr.Options{
		BaseURL: url + "/fhir/demo", TokenURL: url + "/oauth/token", ClientID: "vigil", PrivateKey: sandboxSigningKey(),
		QuickRetryDelays: []time.Duration{time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond},
		Timeout:          time.Minute, ConditionalCreate: true, Now: wallClock,
	}
	for _, change := range changes {
		change(&o)
	}
	client, err := emr.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sandboxWorker delivers the app's real observations with a schedule of milliseconds.
func sandboxWorker(client *emr.Client, finished func(emr.Result)) *emr.Worker {
	return emr.NewWorker(emr.WorkerOptions{
		EMR: client, Schedule: emr.Schedule{5e6, 5e6, 5e6, 5e6, 5e6}, Load: ingest.NewReadingStore(ingest.Rules{}).LoadFHIR,
		Clock: wallClock, Log: slog.New(slog.DiscardHandler), Finished: finished,
	})
}

// queueMany stores readings of the sandbox's one patient, and their deliveries.
func queueMany(t testing.TB, app core.App, n int) {
	t.Helper()
	err := app.RunInTransaction(func(tx core.App) error {
		tx = collections.WithStatementCache(tx)
		for i := range n {
			id, at := collections.NewUUID(), collections.FormatInstant(now.Add(time.Duration(i)*time.Second))
			_, err := tx.DB().NewQuery(`INSERT INTO observations (id, patient, observation_type, measured_at, weight_kg, status, source,
					fhir_status, fhir_version, created_at, updated_at)
				VALUES ({:id}, {:patient}, 'weight', {:at}, 80.25, 'final', 'gateway', 'pending', 1, {:at}, {:at})`).
				Bind(dbx.Params{"id": id, "patient": patient, "at": at}).Execute()
			if err != nil {
				return err
			}
			draft := emr.Draft{ObservationID: id, PatientID: patient, ObservationType: "weight"}
			if _, err := emr.Queue(tx, draft, now.Add(time.Duration(i)*time.Microsecond)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// injectFaults makes a share of the requests for Observations fail, in every way that an EMR and a network can.
func injectFaults(share float64, seed uint64) func(next http.Handler) http.Handler {
	var lock sync.Mutex
	random := mathrand.New(mathrand.NewPCG(seed, seed))
	draw := func() (bool, int) {
		lock.Lock()
		defer lock.Unlock()
		return random.Float64() < share, random.IntN(12)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wrong, how := draw()
			if !wrong || !strings.HasSuffix(r.URL.Path, "/Observation") {
				next.ServeHTTP(w, r)
				return
			}
			misbehave(w, r, next, how)
		})
	}
}

func misbehave(w http.ResponseWriter, r *http.Request, next http.Handler, how int) {
	const html = "<html><body>Bad gateway</body></html>"
	done := func() *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		return answer
	}
	respond := func(status int, body string) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
	switch how {
	case 0: // never arrived
		panic(http.ErrAbortHandler)
	case 1, 2: // arrived, without a response
		done()
		panic(http.ErrAbortHandler)
	case 3: // arrived, reported as failed
		done()
		respond(http.StatusBadGateway, html)
	case 4: // arrived, reported without an id
		respond(done().Code, "")
	case 5: // arrived, half a response
		answer := done()
		body := answer.Body.Bytes()
		w.Header().Set("Content-Length", "100000")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case 6:
		respond(http.StatusServiceUnavailable, "")
	case 7:
		respond(http.StatusTooManyRequests, "")
	case 8:
		respond(http.StatusUnprocessableEntity, `{"resourceType":"OperationOutcome","issue":[{"severity":"error","code":"invariant"}]}`)
	case 9:
		respond(http.StatusUnauthorized, "")
	case 10:
		w.Header().Set("Location", "https://elsewhere.example.org/")
		respond(http.StatusFound, "")
	default: // a proxy's page with a success status
		respond(http.StatusOK, html)
	}
}

// deliverAll runs the worker in this process until nothing is left, and requeues dead letters.
func deliverAll(t testing.TB, w *emr.Worker, app core.App) {
	t.Helper()
	for {
		if _, err := w.SendDue(t.Context(), app, 0); err != nil {
			t.Fatal(err)
		}
		left, err := requeueDeadLetters(w, app)
		if err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
	}
}

// requeueDeadLetters requeues dead letters, as a person would, and counts all that is not delivered.
func requeueDeadLetters(w *emr.Worker, app core.App) (left int, err error) {
	if err := app.DB().NewQuery(`SELECT COUNT(*) FROM transmissions WHERE status != 'transmitted'`).Row(&left); err != nil {
		return 0, err
	}
	var deadLetters []string
	err = app.DB().NewQuery(`SELECT observation FROM transmissions WHERE status = 'failed' AND next_retry_at = ''`).Column(&deadLetters)
	for _, observation := range deadLetters {
		if err == nil {
			err = w.Transform(app, observation, person, wallClock())
		}
	}
	return left, err
}
