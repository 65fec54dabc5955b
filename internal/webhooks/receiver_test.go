package webhooks_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/webhooks"
)

var start = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)

// fakeViews returns the objects that a test sets, by type and id.
type fakeViews map[string]any

func (v fakeViews) Object(_ core.App, kind, record string) (any, error) {
	return v[kind+" "+record], nil
}

// practice is a database with webhooks and a clock that the test sets.
type practice struct {
	t      testing.TB
	app    core.App
	engine *webhooks.Engine
	views  fakeViews

	lock     sync.Mutex
	now      time.Time
	outcomes []string
}

// newPractice returns a practice with an engine of the changed options.
func newPractice(t testing.TB, change ...func(*webhooks.Options)) *practice {
	t.Helper()
	p := &practice{t: t, app: vigiltest.NewApp(t), views: fakeViews{}, now: start}
	p.engine = p.newEngine(change...)
	return p
}

func (p *practice) newEngine(change ...func(*webhooks.Options)) *webhooks.Engine {
	o := webhooks.Options{
		Views: p.views, Timeout: time.Minute, DisableAfter: 120 * time.Hour, UserAgent: "Vigil/test", Log: slog.New(slog.DiscardHandler),
		Client: egress.New(egress.Options{Timeout: time.Minute, DevHosts: []string{"127.0.0.1"}}),
		Schedule: webhooks.Schedule{
			5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
		},
		Clock: p.clock, Jitter: func() float64 { return 0 },
		OnAttempt: func(outcome string) {
			p.lock.Lock()
			defer p.lock.Unlock()
			p.outcomes = append(p.outcomes, outcome)
		},
	}
	for _, f := range change {
		f(&o)
	}
	return webhooks.New(o)
}

func (p *practice) clock() time.Time {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.now
}

// advance advances the clock and processes everything due then.
func (p *practice) advance(d time.Duration) {
	p.t.Helper()
	p.lock.Lock()
	p.now = p.now.Add(d)
	p.lock.Unlock()
	p.runOnce()
}

func (p *practice) runOnce() {
	p.t.Helper()
	if err := p.engine.RunOnce(p.t.Context(), p.app); err != nil {
		p.t.Fatal(err)
	}
}

// advanceInSteps advances the clock by a duration in steps.
func (p *practice) advanceInSteps(whole, step time.Duration) {
	p.t.Helper()
	for ; whole > 0; whole -= step {
		p.advance(step)
	}
}

func (p *practice) run(statements ...string) {
	p.t.Helper()
	for _, statement := range statements {
		if _, err := p.app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			p.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// reading stores a reading of a patient and returns its id.
func (p *practice) reading(patient string, n int) string {
	p.t.Helper()
	id := fmt.Sprintf("%s-%d", patient, n)
	p.run(fmt.Sprintf(`INSERT INTO observations (id, patient, status, observation_type, reading_key, gateway_key) VALUES ('%s', '%s', 'final', 'weight', '%[1]s', '')`, id, patient))
	return id
}

var admin = audit.User(1, "admin@example.org", "admin", audit.Origin{})

func (p *practice) draft(body string) webhooks.Draft {
	p.t.Helper()
	var b webhooks.Body
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		p.t.Fatal(err)
	}
	checks := validate.NewChecks()
	draft := p.engine.ReadChange(b, checks)
	if err := checks.Err(); err != nil {
		p.t.Fatal(err)
	}
	return draft
}

// hook creates a webhook for a receiver.
func (p *practice) hook(r *receiver, events string, more ...string) string {
	p.t.Helper()
	list, _ := json.Marshal(strings.Fields(events))
	body := fmt.Sprintf(`{"url": %q, "events": %s`, r.URL+"/hook", list)
	for _, part := range more {
		body += ", " + part
	}
	made, err := p.engine.Create(p.app, p.draft(body+"}"), admin, p.clock())
	if err != nil {
		p.t.Fatal(err)
	}
	r.secrets = append(r.secrets, made.Secret)
	return made.Webhook.Id
}

func (p *practice) change(id, body string) {
	p.t.Helper()
	if _, err := p.engine.Change(p.app, id, p.draft(body), admin, p.clock()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *practice) webhook(id string) *collections.Webhook {
	p.t.Helper()
	w, err := collections.FindWebhook(p.app, id)
	if err != nil {
		p.t.Fatal(err)
	}
	return w
}

// log returns a webhook's deliveries, oldest first.
func (p *practice) log(id string) []collections.WebhookDelivery {
	p.t.Helper()
	page, _, err := collections.PageOfWebhookDeliveries(p.app, id, "", 0, 100000)
	if err != nil {
		p.t.Fatal(err)
	}
	slices.SortFunc(page, func(a, b collections.WebhookDelivery) int { return int(a.Seq - b.Seq) })
	return page
}

func (p *practice) count(id, status string) int {
	p.t.Helper()
	_, total, err := collections.PageOfWebhookDeliveries(p.app, id, status, 0, 1)
	if err != nil {
		p.t.Fatal(err)
	}
	return total
}

// notices returns the texts of the notices to administrators.
func (p *practice) notices() (bodies []string) {
	p.t.Helper()
	var rows []struct {
		ID   string `db:"id"`
		Body string `db:"body"`
	}
	if err := p.app.DB().NewQuery(`SELECT id, body FROM announcements WHERE kind = 'webhook_trouble' ORDER BY created_at`).All(&rows); err != nil {
		p.t.Fatal(err)
	}
	for _, row := range rows {
		body, err := collections.OpenValue(row.Body, collections.Announcements, "body", row.ID)
		if err != nil {
			p.t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// request is one request that a receiver parsed.
type request struct {
	ID, Type, Timestamp string
	At                  string // of the attempt
	Data                map[string]any
	Raw                 string
}

// receiver is an integrator's endpoint; it rejects requests without a valid signature.
type receiver struct {
	*httptest.Server
	t testing.TB
	// secrets are those that the receiver accepts.
	secrets []string
	clock   func() time.Time

	lock     sync.Mutex
	answer   func(request) int // 200 when nil
	before   func(http.ResponseWriter, *http.Request) bool
	all      []request // in the order of arrival
	accepted []request // answered with 2xx
	// signatures counts the signatures of each request.
	signatures []int
}

func (p *practice) receiver(answer func(request) int) *receiver {
	p.t.Helper()
	r := &receiver{t: p.t, answer: answer, clock: p.clock}
	r.Server = httptest.NewServer(r)
	p.t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if r.before != nil && r.before(w, q) {
		return
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Errorf("body: %v", err)
	}
	if q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" || q.Header.Get("User-Agent") != "Vigil/test" {
		r.t.Errorf("%s with %v", q.Method, q.Header)
	}
	verified := false
	for _, secret := range r.secrets {
		key, err := standard.NewWebhook(secret)
		verified = verified || err == nil && key.VerifyIgnoringTimestamp(body, q.Header) == nil
	}
	if !verified {
		r.t.Errorf("not signed by one of %d secrets: %v", len(r.secrets), q.Header)
	}
	g := request{ID: q.Header.Get("webhook-id"), At: q.Header.Get("webhook-timestamp"), Raw: string(body)}
	if g.At != fmt.Sprint(r.clock().Unix()) {
		r.t.Errorf("the attempt of %d has timestamp %s", r.clock().Unix(), g.At)
	}
	if err := json.Unmarshal(body, &g); err != nil {
		r.t.Errorf("%s: %v", body, err)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.all = append(r.all, g)
	r.signatures = append(r.signatures, len(strings.Fields(q.Header.Get("webhook-signature"))))
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(g)
	}
	if status/100 == 2 {
		r.accepted = append(r.accepted, g)
	}
	w.WriteHeader(status)
}

func (r *receiver) setAnswer(answer func(request) int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.answer = answer
}

// ids returns the ids of the resources of events, in order, of one patient or of all for "".
func ids(events []request, patient string) (ids []string) {
	for _, g := range events {
		if patient == "" || g.Data["patient_id"] == patient {
			ids = append(ids, fmt.Sprint(g.Data["id"]))
		}
	}
	return ids
}

func always(status int) func(request) int { return func(request) int { return status } }

// headerThen answers the first request with a status and Retry-After, and passes the others on.
func headerThen(requests *atomic.Int64, status int, retryAfter string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if requests.Add(1) > 1 {
			return false
		}
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(status)
		return true
	}
}
