package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Webhook endpoints in a real browser, with a receiver that verifies signatures and whose answers the script controls.
func TestConsoleWebhooks(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	r := &scriptedReceiver{status: 200, t: t}
	server := httptest.NewServer(r.routes())
	t.Cleanup(server.Close)
	r.practice = newPractice(t, append(noRateLimits, "VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS="+strings.TrimPrefix(server.URL, "http://"),
		"VIGIL_WEBHOOKS_RETRY_DELAYS=1ms,1ms,1ms,1ms,1ms,1ms,1ms,1ms,1ms")...).serve(t, "")
	r.practice.Admin(t)
	nobody := map[string]any{}
	browser.run(t, r.practice, "console_webhooks.mjs", object{"email": adminEmail, "password": password, "receiver": server.URL}, &nobody)
	wantAt(t, r.practice.get(t, "/api/v1/audit/events/?event=webhook.retry", r.practice.Admin(t)).expect(t, 200), object{"count": 1.0, "results.0.actor_email": adminEmail})
}

// scriptedReceiver is a receiver with answers that the test sets.
type scriptedReceiver struct {
	t        *testing.T
	practice *practice
	lock     sync.Mutex
	status   int
	secret   string
	taken    []string // bodies
}

func (r *scriptedReceiver) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", r.receive)
	mux.HandleFunc("PUT /say/{status}", func(_ http.ResponseWriter, q *http.Request) {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.status, _ = strconv.Atoi(q.PathValue("status"))
	})
	mux.HandleFunc("PUT /secret/{secret}", func(_ http.ResponseWriter, q *http.Request) {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.secret = q.PathValue("secret")
	})
	mux.HandleFunc("PUT /enrol", func(w http.ResponseWriter, _ *http.Request) {
		admin := r.practice.Admin(r.t)
		id := text(r.t, r.practice.post(r.t, "/api/v1/patients/", admin, object{
			"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1955-12-10", "gender": "female",
		}).expect(r.t, 201), "id")
		hook := text(r.t, r.practice.get(r.t, "/api/v1/webhooks/", admin).expect(r.t, 200), "results.0.id")
		eventually(r.t, within, "the event is given up", func() bool {
			return at(r.t, r.practice.get(r.t, "/api/v1/webhooks/"+hook+"/deliveries/?status=failed", admin).expect(r.t, 200), "results.0.object_id") == id
		})
		_, _ = io.WriteString(w, id)
	})
	mux.HandleFunc("PUT /taken/{id}", func(_ http.ResponseWriter, q *http.Request) {
		eventually(r.t, within, "the event is taken", func() bool {
			r.lock.Lock()
			defer r.lock.Unlock()
			return slices.ContainsFunc(r.taken, func(body string) bool { return strings.Contains(body, q.PathValue("id")) })
		})
		admin := r.practice.Admin(r.t)
		hook := text(r.t, r.practice.get(r.t, "/api/v1/webhooks/", admin).expect(r.t, 200), "results.0.id")
		eventually(r.t, within, "the service knows that it was taken", func() bool {
			return strings.Contains(string(r.practice.get(r.t, "/api/v1/webhooks/"+hook+"/deliveries/?status=delivered", admin).expect(r.t, 200).body), q.PathValue("id"))
		})
	})
	return mux
}

func (r *scriptedReceiver) receive(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.lock.Lock()
	defer r.lock.Unlock()
	key, err := standard.NewWebhook(r.secret)
	if err != nil || key.Verify(body, q.Header) != nil {
		r.t.Errorf("not signed: %v", err)
	}
	if r.status == http.StatusOK {
		r.taken = append(r.taken, string(body))
	}
	w.WriteHeader(r.status)
}
