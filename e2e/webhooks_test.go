package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// integrator is a webhook receiver in a separate program.
type integrator struct {
	*httptest.Server
	lock   sync.Mutex
	secret string
	answer func(n int) int // of the nth request
	asked  int
	taken  []string            // ids of the accepted events, in order
	events map[string]string   // subject of each event, by webhook-id
	seen   map[string]int      // number of requests per event
	order  map[string][]string // accepted events of each patient, without repeats
	wrong  []string
}

func newIntegrator(t *testing.T) *integrator {
	r := &integrator{events: map[string]string{}, seen: map[string]int{}, order: map[string][]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *integrator) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.lock.Lock()
	defer r.lock.Unlock()
	body, _ := io.ReadAll(q.Body)
	key, err := standard.NewWebhook(r.secret)
	if err == nil {
		err = key.Verify(body, q.Header)
	}
	var event struct {
		Type string
		Data struct {
			ID      any
			Patient string `json:"patient_id"`
		}
	}
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.asked++
	id, what := q.Header.Get("webhook-id"), event.Type+" "+fmt.Sprint(event.Data.ID)
	if before, known := r.events[id]; known && before != what {
		r.wrong = append(r.wrong, id+" is "+before+" and "+what)
	}
	r.events[id] = what
	r.seen[id]++
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(r.asked)
	}
	if status == http.StatusOK && !slices.Contains(r.taken, id) {
		r.taken = append(r.taken, id)
		r.order[event.Data.Patient] = append(r.order[event.Data.Patient], fmt.Sprint(event.Data.ID))
	}
	w.WriteHeader(status)
}

func (r *integrator) look(f func()) {
	r.lock.Lock()
	defer r.lock.Unlock()
	f()
}

// With a receiver that fails at first and a service that is killed repeatedly, every event arrives, signed and in its
// patient's order, and repeats have the same id.
func TestWebhooksThroughKills(t *testing.T) {
	t.Parallel()
	r := newIntegrator(t)
	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := newPractice(t, "VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS="+at.Host, "VIGIL_WEBHOOKS_RETRY_DELAYS=50ms,50ms,50ms,50ms,50ms,50ms,50ms,50ms,50ms",
		"VIGIL_RATE_LIMIT_USER=0").serve(t, "")
	admin := p.Admin(t)
	made := p.post(t, "/api/v1/webhooks/", admin, object{"url": r.URL + "/hook", "events": []string{"observation.created"}}).expect(t, 201)
	r.look(func() {
		r.secret = text(t, made, "secret")
		r.answer = func(n int) int {
			if n%5 == 0 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
	})
	patients := []string{}
	for i := range 4 {
		patients = append(patients, text(t, p.post(t, "/api/v1/patients/", admin, object{
			"first_name": "Ada", "last_name": fmt.Sprintf("Number %c", 'A'+i), "date_of_birth": "1955-12-10", "gender": "female",
		}).expect(t, 201), "id"))
	}
	want := map[string][]string{}
	for round := range 5 {
		for i := range 10 {
			for _, patient := range patients {
				stored := p.post(t, "/api/v1/ingestion/weight/", admin, object{
					"patient_id": patient, "weight_kg": 80 + float64(round), "device_id": "S-" + patient[30:],
					"measured_at": now().Add(-time.Hour + time.Duration(round*10+i)*time.Second).Format(time.RFC3339),
				}).expect(t, 201)
				want[patient] = append(want[patient], text(t, stored, "id"))
			}
		}
		p.Kill()
		p.serve(t, "")
	}
	eventually(t, time.Minute, "everything is told", func() (all bool) {
		r.look(func() { all = len(r.taken) >= 200 })
		return all
	})
	p.Kill()
	p.serve(t, "")
	p.get(t, "/api/v1/webhooks/"+text(t, made, "id")+"/deliveries/?status=failed", admin).expect(t, 200)
	r.look(func() {
		twice := 0
		for _, n := range r.seen {
			if n > 1 {
				twice++
			}
		}
		t.Logf("%d requests for %d events; %d came more than once", r.asked, len(r.taken), twice)
		if len(r.wrong) > 0 || len(r.events) != 200 {
			t.Errorf("%d events, and wrong: %v", len(r.events), r.wrong)
		}
		for _, patient := range patients {
			if !slices.Equal(want[patient], r.order[patient]) {
				t.Errorf("%s: stored %v, delivered %v", patient, want[patient], r.order[patient])
			}
		}
	})
	if err := p.Stop(t); err != nil {
		t.Error(err)
	}
	p.must(t, p.Dir, "audit", "verify")
}

// Receivers must be public hosts: without the setting, local addresses are refused when a webhook is created, and in
// production the setting is refused.
func TestWebhookHostsRestricted(t *testing.T) {
	t.Parallel()
	r := newIntegrator(t)
	p := newPractice(t).serve(t, "")
	admin := p.Admin(t)
	for _, at := range []string{r.URL, strings.Replace(r.URL, "http://", "https://", 1), "https://localhost/", "https://[::1]/"} {
		got := p.post(t, "/api/v1/webhooks/", admin, object{"url": at, "events": []string{"alert.raised"}})
		got.expect(t, 400)
	}
	r.look(func() {
		if r.asked != 0 || len(r.wrong) != 0 {
			t.Error("a request was sent")
		}
	})
}
