package hooks_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"
	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// nothing shows every patient as removed from the list.
type nothing struct{}

func (nothing) Patients(core.App, []string) (map[string]realtime.View, error)    { return nil, nil }
func (nothing) Alerts(core.App, []string) (map[string]realtime.View, error)      { return nil, nil }
func (nothing) Escalations(core.App, []string) (map[string]realtime.View, error) { return nil, nil }

// station serves PocketBase's realtime routes with Vigil's hooks.
type station struct {
	t         testing.TB
	app       *tests.TestApp
	readings  *ingest.ReadingStore
	publisher *realtime.Publisher
	server    *httptest.Server
}

func newStation(t testing.TB, requests int, views realtime.Views) *station {
	t.Helper()
	s := &station{t: t, app: vigiltest.NewApp(t), readings: ingest.NewReadingStore(ingest.Rules{PracticeZone: time.UTC})}
	authority := auth.New(vigiltest.Sealer(), auth.Options{})
	s.publisher = realtime.NewPublisher(realtime.Options{
		Views: views, Authenticate: authority.AuthenticatePassively, Zone: time.UTC, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	engines := hooks.Engines{
		ReadingStore: s.readings, Directory: patients.NewDirectory(), Zone: time.UTC, Clock: time.Now, EvictUser: func(string) {},
		Wake: func() {}, WakeMailer: func() {}, Realtime: s.publisher, Auth: authority,
		Limits: ratelimit.NewLimiter(map[ratelimit.Class]ratelimit.Policy{ratelimit.Realtime: {Requests: requests, Window: time.Minute}}),
	}
	hooks.Bind(s.app, engines)
	router, err := apis.NewRouter(s.app)
	if err != nil {
		t.Fatal(err)
	}
	router.Bind(hooks.Guard(engines)...)
	handler, err := router.BuildMux()
	if err != nil {
		t.Fatal(err)
	}
	s.server = httptest.NewServer(handler)
	t.Cleanup(s.server.Close)
	return s
}

// open opens a stream and reads its lines.
func (s *station) open() (clientID string, lines *bufio.Scanner) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.server.URL+"/api/realtime", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != 200 {
		s.t.Fatalf("%v %v", answer, err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	lines = bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		s.t.Fatal("no first line")
	}
	id, _ := strings.CutPrefix(lines.Text(), "id:")
	for lines.Scan() && lines.Text() != "" {
	}
	return id, lines
}

func (s *station) subscribe(clientID, token string, topics ...string) (status int, header http.Header) {
	s.t.Helper()
	body := fmt.Sprintf(`{"clientId":%q,"subscriptions":["%s"]}`, clientID, strings.Join(topics, `","`))
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.server.URL+"/api/realtime", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header
}

// A message reaches a subscriber over HTTP, and the subscription is audited.
func TestRealtimeTopic(t *testing.T) {
	s := newStation(t, 0, nothing{})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.publisher.Run(ctx, s.app) })
	t.Cleanup(func() { stop(); running.Wait() })
	nurse := vigiltest.User(t, s.app, authz.Nurse)
	id, lines := s.open()
	for _, token := range []string{vigiltest.Token(t, nurse, time.Now()), "Bearer " + vigiltest.Token(t, nurse, time.Now())} { // the SDK sends it bare
		if status, _ := s.subscribe(id, token, "triage"); status != 204 {
			t.Fatalf("answered %d", status)
		}
	}
	err := audit.Append(s.app, audit.Entry{Event: audit.PatientArchive, Actor: audit.System(), ResourceType: "Patient", ResourceID: "p1", PatientID: "p1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.publisher.Wake()
	if !lines.Scan() || lines.Text() != "event:triage" || !lines.Scan() || !strings.HasPrefix(lines.Text(), `data:{"type":"patient","seq":`) {
		t.Errorf("received %q", lines.Text())
	}
	var read int
	if err := s.app.DB().Select("COUNT(*)").From(collections.AuditLog).AndWhere(dbx.HashExp{"resource_id": "triage"}).Row(&read); err != nil || read != 2 {
		t.Errorf("%d subscriptions on record (%v)", read, err)
	}
}

func TestRealtimeRefusals(t *testing.T) {
	s := newStation(t, 0, nothing{})
	token := func(role authz.Role, options ...vigiltest.UserOption) string {
		return vigiltest.Token(t, vigiltest.User(t, s.app, role, options...), time.Now())
	}
	for _, test := range []struct {
		name, token string
		topics      []string
		want        int
	}{
		{"nurse", token(authz.Nurse), []string{"triage"}, 204},
		{"with options", token(authz.Nurse), []string{"triage?options={}"}, 403},
		{"the SDK's reconnection", token(authz.Nurse), []string{"triage", "PB_CONNECT"}, 204},
		{"and another", token(authz.Nurse), []string{"triage", "alerts/*"}, 403},
		{"data monitor", token(authz.DataMonitor), []string{"triage"}, 403},
		{"patient", token(authz.Patient), []string{"triage"}, 403},
		{"guest", "", []string{"triage"}, 401},
		{"inactive", token(authz.Nurse, vigiltest.Inactive()), []string{"triage"}, 401},
	} {
		id, _ := s.open()
		if status, _ := s.subscribe(id, test.token, test.topics...); status != test.want {
			t.Errorf("%s: %d, want %d", test.name, status, test.want)
		}
	}
	foreign := subscriptions.NewDefaultClient() // a client without Vigil's stream
	s.app.SubscriptionsBroker().Register(foreign)
	if status, _ := s.subscribe(foreign.Id(), token(authz.Nurse), "triage"); status != 403 {
		t.Errorf("a foreign client: %d", status)
	}
}

// Subscriptions are counted by user, not by address.
func TestSubscribingIsLimitedByUser(t *testing.T) {
	s := newStation(t, 2, nothing{})
	id, _ := s.open()
	nurse := vigiltest.Token(t, vigiltest.User(t, s.app, authz.Nurse), time.Now())
	for range 2 {
		if status, _ := s.subscribe(id, nurse, "triage"); status != 204 {
			t.Fatalf("the nurse: %d", status)
		}
	}
	if status, header := s.subscribe(id, nurse, "triage"); status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("the nurse's third: %d, retry after %q", status, header.Get("Retry-After"))
	}
	colleague := vigiltest.Token(t, vigiltest.User(t, s.app, authz.Provider), time.Now())
	other, _ := s.open()
	if status, _ := s.subscribe(other, colleague, "triage"); status != 204 {
		t.Errorf("a colleague: %d", status)
	}
}

// A subscribed stream no longer counts for its address, so a whole clinic can reconnect at once after a restart. Unsubscribed streams and
// attempts without a token still count.
func TestOpeningIsLimitedByAddress(t *testing.T) {
	s := newStation(t, 2, nothing{})
	for n := range 6 {
		user := vigiltest.User(t, s.app, authz.Nurse, vigiltest.Email(fmt.Sprintf("colleague%d@vigil.test", n)))
		id, _ := s.open()
		if status, _ := s.subscribe(id, vigiltest.Token(t, user, time.Now()), "triage"); status != 204 {
			t.Fatalf("colleague %d: %d", n, status)
		}
	}
	id, _ := s.open()
	if status, _ := s.subscribe(id, "", "triage"); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	if status, header := s.subscribe(id, "", "triage"); status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("without a token again: %d", status)
	}
	answer, err := http.Get(s.server.URL + "/api/realtime")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 429 {
		t.Errorf("opening after that: %d", answer.StatusCode)
	}
}
