package realtime_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"
	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// fixture is a publisher over a real database, advanced by hand, with its own clock.
type fixture struct {
	t         *testing.T
	app       *tests.TestApp
	auth      *auth.Engine
	publisher *realtime.Publisher
	now       time.Time
	views     *views
}

// views renders every id as itself, except the patients who are not listed.
type views struct {
	gone  map[string]bool
	alert string // the patient of every alert and escalation
	fail  error
}

func (v *views) show(ids []string, patient func(string) string) (map[string]realtime.View, error) {
	shown := map[string]realtime.View{}
	for _, id := range ids {
		if !v.gone[id] {
			shown[id] = realtime.View{PatientID: patient(id), Data: id}
		}
	}
	return shown, v.fail
}

func (v *views) Patients(_ core.App, ids []string) (map[string]realtime.View, error) {
	return v.show(ids, func(id string) string { return id })
}

func (v *views) Alerts(_ core.App, ids []string) (map[string]realtime.View, error) {
	return v.show(ids, func(string) string { return v.alert })
}

func (v *views) Escalations(_ core.App, ids []string) (map[string]realtime.View, error) {
	return v.Alerts(nil, ids)
}

func newFixture(t *testing.T, change ...func(*realtime.Options)) *fixture {
	t.Helper()
	r := &fixture{t: t, app: vigiltest.NewApp(t), now: vigiltest.Clock, views: &views{gone: map[string]bool{}, alert: "p1"}}
	r.auth = auth.New(vigiltest.Sealer(), auth.Options{RequireTwoFactor: auth.TwoFactorPolicy{Roles: []authz.Role{authz.MA}}})
	options := realtime.Options{
		Views: r.views, Authenticate: r.auth.AuthenticatePassively, Zone: time.UTC, Clock: func() time.Time { return r.now }, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&options)
	}
	r.publisher = realtime.NewPublisher(options)
	if err := r.publisher.Start(r.app); err != nil {
		t.Fatal(err)
	}
	return r
}

// subscribe subscribes a user as the route does.
func (f *fixture) subscribe(user *collections.User) (*realtime.Stream, error) {
	f.t.Helper()
	stream, topic := realtime.NewStream(subscriptions.NewDefaultClient(), func() {}), realtime.Topic
	if authz.Role(user.Role()) == authz.Patient {
		topic = realtime.PortalTopic
	}
	_, err := f.publisher.Subscribe(f.app, stream, topic, vigiltest.Token(f.t, user, f.now), f.now)
	if err == nil {
		stream.Subscribe(topic)
		f.app.SubscriptionsBroker().Register(stream)
	}
	return stream, err
}

func (f *fixture) mustSubscribe(user *collections.User) *realtime.Stream {
	f.t.Helper()
	stream, err := f.subscribe(user)
	if err != nil {
		f.t.Fatal(err)
	}
	return stream
}

// note adds an entry to the audit trail.
func (f *fixture) note(event audit.Event, resource, id, patient string, outcome ...audit.Outcome) {
	f.t.Helper()
	entry := audit.Entry{Event: event, Actor: audit.System(), ResourceType: resource, ResourceID: id, PatientID: patient}
	for _, o := range outcome {
		entry.Outcome = o
	}
	if err := audit.Append(f.app, entry, f.now); err != nil {
		f.t.Fatal(err)
	}
}

// round runs the publisher some time later.
func (f *fixture) round(after time.Duration) {
	f.t.Helper()
	f.now = f.now.Add(after)
	if _, err := f.publisher.Round(f.app); err != nil {
		f.t.Fatal(err)
	}
}

type message struct {
	Type string `json:"type"`
	Seq  int64  `json:"seq"`
	At   string `json:"at"`
	Data any    `json:"data"`
}

// received returns the queued messages of a stream, and whether it is still open.
func received(t *testing.T, stream *realtime.Stream) (messages []message, open bool) {
	t.Helper()
	for {
		select {
		case m, ok := <-stream.Channel():
			if !ok {
				return messages, false
			}
			messages = append(messages, parse(t, m)...)
		default:
			return messages, true
		}
	}
}

func parse(t *testing.T, m subscriptions.Message) (messages []message) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(string(m.Data), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "event:"+m.Name+"\ndata:")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("no event of the topic: %q", event)
		}
		var one message
		if err := json.Unmarshal([]byte(data), &one); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, one)
	}
	return messages
}

// texts returns the queued messages as "type data"; totals by their type alone.
func texts(t *testing.T, stream *realtime.Stream) (list []string) {
	t.Helper()
	messages, _ := received(t, stream)
	for _, m := range messages {
		switch data := m.Data.(type) {
		case string:
			list = append(list, m.Type+" "+data)
		case map[string]any:
			if data["removed"] == true {
				list = append(list, m.Type+" -"+data["patient_id"].(string))
			} else {
				list = append(list, m.Type)
			}
		}
	}
	return list
}

func want(t *testing.T, stream *realtime.Stream, expected ...string) {
	t.Helper()
	if diff := cmp.Diff(expected, texts(t, stream)); diff != "" {
		t.Error(diff)
	}
}

func TestMessages(t *testing.T) {
	r := newFixture(t)
	stream := r.mustSubscribe(vigiltest.User(t, r.app, authz.Nurse))
	r.round(0)
	want(t, stream) // nothing happened, nothing is sent

	r.note(audit.ObservationCreate, "Observation", "o1", "p1")
	r.note(audit.AlertCreate, "Alert", "7", "p1")
	r.note(audit.EscalationCreate, "Escalation", "3", "p1")
	r.note(audit.ObservationCreate, "Observation", "o2", "p2")
	r.note(audit.ObservationCreate, "Observation", "o3", "p1")
	r.round(time.Millisecond)
	want(t, stream, "alert 000000000000007", "escalation 000000000000003", "patient p1", "patient p2", "stats")

	r.note(audit.PatientRead, "Patient", "p1", "p1")
	r.note(audit.BillingCreate, "BillingEntry", "b1", "p1")
	r.note(audit.ThresholdUpdate, "Thresholds", "", "")
	r.note(audit.AlertAcknowledge, "Alert", "7", "p1", audit.MinorFailure)
	r.round(time.Minute)
	want(t, stream) // reads and refusals change nothing

	r.views.gone["p2"] = true
	r.note(audit.PatientArchive, "Patient", "p2", "p2")
	r.publisher.Rescored([]string{"p3", "p1", "p3"})
	r.round(time.Millisecond)
	want(t, stream, "patient -p2", "patient p3", "patient p1") // the totals are what they were
}

// Totals are sent if they changed, at most once a second.
func TestStats(t *testing.T) {
	r := newFixture(t)
	stream := r.mustSubscribe(vigiltest.User(t, r.app, authz.Admin))
	change := func() {
		if _, err := r.app.DB().NewQuery("UPDATE triage_totals SET patients = patients + 1 WHERE risk_level = 'normal' AND needs_review = 0").Execute(); err != nil {
			t.Fatal(err)
		}
		r.note(audit.TriageReview, "Patient", "p1", "p1")
	}
	change()
	r.round(0)
	want(t, stream, "patient p1", "stats")
	change()
	r.round(400 * time.Millisecond)
	want(t, stream, "patient p1")
	change()
	r.round(400 * time.Millisecond)
	want(t, stream, "patient p1")
	r.round(400 * time.Millisecond) // 1.2 s after the first
	want(t, stream, "stats")
	r.round(time.Hour)
	want(t, stream)
}

// Sequence numbers grow from message to message and from run to run.
func TestSequence(t *testing.T) {
	r := newFixture(t)
	user := vigiltest.User(t, r.app, authz.Provider)
	last := int64(0)
	for range 3 {
		stream := r.mustSubscribe(user)
		for range 5 {
			r.note(audit.AlertCreate, "Alert", "1", "p1")
			r.round(time.Second)
		}
		messages, _ := received(t, stream)
		if len(messages) < 10 {
			t.Fatalf("%d messages", len(messages))
		}
		for _, m := range messages {
			if m.Seq <= last || m.Seq > 1<<53 {
				t.Fatalf("%d follows %d", m.Seq, last)
			}
			if last = m.Seq; m.At == "" {
				t.Error("a message without its time")
			}
		}
		stream.Discard()
		r.app.SubscriptionsBroker().Unregister(stream.Id())
		restarted := newPublisherOver(r)
		r.publisher = restarted
	}
}

func newPublisherOver(r *fixture) *realtime.Publisher {
	r.t.Helper()
	publisher := realtime.NewPublisher(r.publisher.Options)
	if err := publisher.Start(r.app); err != nil {
		r.t.Fatal(err)
	}
	return publisher
}

func TestWhoMaySubscribe(t *testing.T) {
	r := newFixture(t)
	for _, test := range []struct {
		name string
		user *collections.User
		want string
	}{
		{"administrator", vigiltest.User(t, r.app, authz.Admin), ""},
		{"clinical manager", vigiltest.User(t, r.app, authz.ClinicalManager), ""},
		{"provider", vigiltest.User(t, r.app, authz.Provider), ""},
		{"nurse", vigiltest.User(t, r.app, authz.Nurse), ""},
		{"medical assistant without a second factor", vigiltest.User(t, r.app, authz.MA), "two_factor_setup_required"},
		{"medical assistant", vigiltest.User(t, r.app, authz.MA, vigiltest.TwoFactor("JBSWY3DPEHPK3PXP")), ""},
		{"data monitor", vigiltest.User(t, r.app, authz.DataMonitor), "permission_denied"},
		{"patient", vigiltest.User(t, r.app, authz.Patient), "permission_denied"},
		{"inactive nurse", vigiltest.User(t, r.app, authz.Nurse, vigiltest.Inactive()), "token_invalid"},
	} {
		if _, err := r.subscribe(test.user); codeOf(err) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	stream := realtime.NewStream(subscriptions.NewDefaultClient(), func() {})
	for token, code := range map[string]string{"": "not_authenticated", "forged": "token_invalid"} {
		if _, err := r.publisher.Subscribe(r.app, stream, realtime.Topic, token, r.now); codeOf(err) != code {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	code, _, _ := strings.Cut(err.Error(), ":")
	return code
}

// A reader who loses permission is disconnected before the next message.
func TestUnauthorizedReaderIsCut(t *testing.T) {
	for name, end := range map[string]func(r *fixture, user *collections.User){
		"expired":     func(r *fixture, _ *collections.User) { r.now = time.Now().Add(16 * time.Minute) },
		"deactivated": func(_ *fixture, user *collections.User) { user.Set("is_active", false) },
		"other role":  func(_ *fixture, user *collections.User) { user.Set("role", string(authz.DataMonitor)) },
		"signed out":  func(_ *fixture, user *collections.User) { user.RefreshTokenKey() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.app.OnRecordAfterUpdateSuccess(collections.Users).BindFunc(func(e *core.RecordEvent) error {
				r.auth.Evict(e.Record.Id)
				return e.Next()
			})
			user := vigiltest.User(t, r.app, authz.Nurse)
			stream := r.mustSubscribe(user)
			end(r, user)
			if err := r.app.Save(user); err != nil {
				t.Fatal(err)
			}
			r.note(audit.AlertCreate, "Alert", "7", "p1")
			r.round(0)
			if messages, open := received(t, stream); open || len(messages) != 0 {
				t.Errorf("open %t, received %v", open, messages)
			}
		})
	}
}

// A practice that limits clinicians to their care teams does so here too.
func TestCareTeams(t *testing.T) {
	r := newFixture(t, func(o *realtime.Options) { o.RestrictToCareTeam = true })
	nurse, provider, manager := vigiltest.User(t, r.app, authz.Nurse), vigiltest.User(t, r.app, authz.Provider), vigiltest.User(t, r.app, authz.ClinicalManager)
	insert := func(table string, row dbx.Params) {
		t.Helper()
		if _, err := r.app.DB().Insert(table, row).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	insert(collections.CareTeamMembers, dbx.Params{"patient": "p1", "user": nurse.Id})
	insert(collections.Patients, dbx.Params{"id": "p2", "mrn": "2", "primary_provider": provider.Id})
	for _, p := range []string{"p1", "p2", "p3"} {
		insert(collections.TriageScores, dbx.Params{"patient": p, "listed": true, "risk_level": "normal", "risk_score": 10})
	}
	streams := []*realtime.Stream{r.mustSubscribe(nurse), r.mustSubscribe(provider), r.mustSubscribe(manager)}
	r.note(audit.AlertCreate, "Alert", "7", "p1")
	r.note(audit.ObservationCreate, "Observation", "o", "p2")
	r.note(audit.ObservationCreate, "Observation", "o", "p3")
	r.round(0)
	totals := func(stream *realtime.Stream) (list []string, patients any) {
		messages, _ := received(t, stream)
		for _, m := range messages {
			if data, ok := m.Data.(map[string]any); ok {
				patients = data["total_patients"]
				continue
			}
			list = append(list, m.Data.(string))
		}
		return list, patients
	}
	for i, expected := range []struct {
		list     []string
		patients float64
	}{
		{[]string{"000000000000007", "p1"}, 1}, {[]string{"p2"}, 1}, {[]string{"000000000000007", "p1", "p2", "p3"}, 3},
	} {
		list, patients := totals(streams[i])
		if diff := cmp.Diff(expected.list, list); diff != "" || patients != expected.patients {
			t.Errorf("reader %d counts %v: %s", i, patients, diff)
		}
	}
}
