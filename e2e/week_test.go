package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/cmd"
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// The seven days begin on the last evening of winter time in Berlin and end after the last morning of summer time in Sydney,
// so that both clock changes are within them.
var (
	weekStart = time.Date(2026, time.March, 28, 22, 0, 0, 0, time.UTC)
	weekHours = 7 * 24
	berlin    = mustZone("Europe/Berlin")
	sydney    = mustZone("Australia/Sydney")
	newYork   = mustZone("America/New_York")
)

func mustZone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// testClock is a clock that the test sets. Its timers never fire: the test runs the jobs.
type testClock struct {
	clockwork.Clock
	at atomic.Int64 // nanoseconds since 1970
}

func newTestClock(at time.Time) *testClock {
	c := &testClock{Clock: clockwork.NewFakeClockAt(at)}
	c.set(at)
	return c
}

func (c *testClock) set(at time.Time) { c.at.Store(at.UnixNano()) }

// Now implements [clockwork.Clock].
func (c *testClock) Now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

// Since implements [clockwork.Clock].
func (c *testClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// jobLog stores the log lines, and reports the jobs that have ended.
type jobLog struct {
	mu    sync.Mutex
	out   bytes.Buffer
	ended chan string // names
}

func (jl *jobLog) Write(line []byte) (int, error) {
	var said struct{ Msg, Job string }
	if bytes.Contains(line, []byte(`"job":`)) && json.Unmarshal(line, &said) == nil && (said.Msg == "job done" || said.Msg == "job failed") {
		jl.ended <- said.Job
	}
	jl.mu.Lock()
	defer jl.mu.Unlock()
	return jl.out.Write(line)
}

func (jl *jobLog) bytes() []byte {
	jl.mu.Lock()
	defer jl.mu.Unlock()
	return bytes.Clone(jl.out.Bytes())
}

// week is a practice inside the test, under a clock that the test sets, with everything it sends recorded.
type week struct {
	t *testing.T
	*practice
	app     core.App
	service *cmd.Service
	signer  *auth.Engine
	clock   *testClock
	log     jobLog
	mail    *sandbox.MailCatcher
	pushes  *pushCatcher
	texts   *textCatcher
	emrDown atomic.Bool
	ann     string // the patient with readings, in the care of the provider and the nurse
	bob     string // the patient who never measures, without a care team
	// measured are the hours with a reading out of range.
	measured []time.Time
}

func newWeek(t *testing.T) *week {
	t.Helper()
	w := &week{t: t, clock: newTestClock(weekStart), log: jobLog{ended: make(chan string, 1000)}}
	w.pushes, w.texts = newPushCatcher(t, w.clock.Now), newTextCatcher(t)
	var err error
	if w.mail, err = sandbox.NewMailCatcher(w.clock.Now, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.mail.Close() })
	emrServer := httptest.NewUnstartedServer(nil)
	emrURL := "http://" + emrServer.Listener.Addr().String()
	addr := freeAddr(t)
	w.practice = newPractice(t, append(slices.Concat(emrSettings(emrURL), w.pushes.settings, w.texts.settings), "VIGIL_EMR_QUICK_RETRY_DELAYS=1ms", "VIGIL_LOG_LEVEL=debug",
		"VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS=127.0.0.1", "VIGIL_WARNING_PUSH=each", // each alert has its push and text
		"VIGIL_RESTRICT_TO_CARE_TEAM=true", "VIGIL_CONFIRM_READINGS=10m", "VIGIL_SMTP_HOST=127.0.0.1", "VIGIL_SMTP_PORT="+mailPort(w.mail), "VIGIL_SMTP_FROM=vigil@vigil.test")...)
	w.URL = "http://" + addr
	emr, err := sandbox.NewEMR(sandbox.EMROptions{BaseURL: emrURL, PracticeCode: practiceCode, ClientID: clientID, JWKSURL: w.URL + "/.well-known/jwks.json", Now: w.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	emrServer.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.emrDown.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.Method == http.MethodPut { // an update cannot succeed here
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		emr.ServeHTTP(rw, r)
	})
	emrServer.Start()
	t.Cleanup(emrServer.Close)
	w.serveInside(addr)
	return w
}

// serveInside runs the service until the test ends.
func (w *week) serveInside(addr string) {
	w.t.Helper()
	settings, err := config.Load(w.Env)
	if err != nil {
		w.t.Fatal(err)
	}
	settings = settings.WithPublicURL(w.named())
	const settingsKey = "VIGIL_SETTINGS_KEY"
	w.t.Setenv(settingsKey, settings.SettingsKey.Reveal())
	w.app = core.NewBaseApp(core.BaseAppConfig{ // as in the service, but without flushing to disk
		DataDir: w.Dir, EncryptionEnv: settingsKey, DBConnect: func(path string) (*dbx.DB, error) { return sqlite.Open(path, "OFF") },
	})
	sealer, err := cmd.OpenToServe(w.app, settings)
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: settings.SlogLevel()}))
	if w.service, err = program.NewService(w.app, sealer, settings, log, w.clock); err != nil {
		w.t.Fatal(err)
	}
	w.signer = auth.New(sealer, auth.Options{})
	hashCheaply(w.t, w.app)
	listening, ended := make(chan string, 1), make(chan error, 1)
	w.service.Listening = func(address string) { listening <- address }
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- w.service.Serve(ctx, addr, "") }()
	select {
	case <-listening:
	case err := <-ended:
		ended <- err
		w.t.Errorf("the service did not start: %v", err)
	}
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Errorf("the service ended with: %v", err)
		}
	})
}

// hashCheaply sets the lowest hash cost for the practice's passwords.
func hashCheaply(t testing.TB, app core.App) {
	t.Helper()
	users, err := app.FindCollectionByNameOrId(collections.Users)
	if err == nil {
		users.Fields.GetByName("password").(*core.PasswordField).Cost = bcrypt.MinCost
		err = app.Save(users)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// as returns an access token of the account with an address.
func (w *week) as(email string) string {
	w.t.Helper()
	user, err := collections.FindUserByEmail(w.app, email)
	if err != nil {
		w.t.Fatal(email, err)
	}
	token, err := w.signer.SignAccess(user, "", w.clock.Now())
	if err != nil {
		w.t.Fatal(email, err)
	}
	return token
}

// number returns the account's number in the contract.
func (w *week) number(email string) int64 {
	w.t.Helper()
	user, err := collections.FindUserByEmail(w.app, email)
	if err != nil {
		w.t.Fatal(email, err)
	}
	return user.Number()
}

// event sends a gateway event at the calendar's time.
func (w *week) event(event object, status int) answer {
	w.t.Helper()
	event["timestamp"] = w.clock.Now().Format(time.RFC3339)
	body := encode(w.t, event)
	return w.send(w.t, http.MethodPost, webhook, "", body, signature(w.WebhookSecret, body, w.clock.Now())...).expect(w.t, status)
}

// count returns the result of a counting query.
func (w *week) count(query string) (n int) {
	w.t.Helper()
	if err := w.app.NonconcurrentDB().NewQuery(query).Row(&n); err != nil {
		w.t.Fatal(query, err)
	}
	return n
}

// run makes the scheduler run jobs now, one after the other, each to its end.
func (w *week) run(names ...string) {
	w.t.Helper()
	for _, name := range names {
		jobs := w.service.Scheduler.Jobs()
		i := slices.IndexFunc(jobs, func(job gocron.Job) bool { return job.Name() == name })
		if i < 0 {
			w.t.Fatalf("there is no job %q", name)
		}
		for len(w.log.ended) > 0 {
			<-w.log.ended // of scheduled runs
		}
		ask := time.After(0)
		for ended := ""; ended != name; {
			select {
			case <-ask:
				if err := jobs[i].RunNow(); err != nil {
					w.t.Fatal(name, err)
				}
				ask = time.After(15 * time.Second) // the scheduler refuses a job whose last run has just ended
			case ended = <-w.log.ended:
			case <-w.t.Context().Done():
				w.t.Fatal(name, "does not end")
			}
		}
	}
}

// until waits for background work.
func (w *week) until(what string, holds func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(within); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			w.t.Fatalf("timed out waiting at %s: %s", w.clock.Now(), what)
		}
	}
}

// awaitAnnouncements waits until all announcements are sent.
func (w *week) awaitAnnouncements() {
	w.t.Helper()
	soon := collections.FormatInstant(w.clock.Now().Add(5 * time.Minute))
	w.until("everybody is told", func() bool {
		return w.count(`SELECT (SELECT COUNT(*) FROM announcements WHERE told_at = '') + (SELECT COUNT(*) FROM notifications WHERE dispatched_at = '') +
			(SELECT COUNT(*) FROM push_deliveries WHERE status = 'pending' AND next_attempt_at <= '`+soon+`') + (SELECT COUNT(*) FROM mails WHERE status = 'pending')`) == 0
	})
}

// Scheduled jobs: each is run at its hours in the practice's zone. Source: docs/decisions/jobs.md, "Scheduled jobs".
var (
	hourly = []string{"reminders", "overdue escalations", "snoozes and held alerts"}
	fourth = []string{
		"pending FHIR processing", "hub check", "missed readings", "silent devices", "stale readings", "risk recalculation", "smart billing engine",
		"running timers", "ages", "EMR connection check", "push delivery", "mail delivery",
	}
	daily    = map[int]string{2: "device billing", 3: "billing sums", 4: "audit verification", 5: "retention purge", 6: "database upkeep"}
	tokenDay = "stale push token cleanup" // Sundays at 3:00
)

// isQuietHourEdge reports whether a reading at an hour is relevant for quiet hours: next to their start or end. A few others are
// sent too.
func isQuietHourEdge(at time.Time) bool {
	near := func(zone *time.Location) bool { return slices.Contains([]int{6, 7, 21, 22}, at.In(zone).Hour()) }
	return near(berlin) || near(sydney) || at.Hour()%6 == 0
}

// runHours advances the clock through every hour of the week and runs its events.
func (w *week) runHours(happening map[int]func()) {
	w.t.Helper()
	for hour := range weekHours {
		now := weekStart.Add(time.Duration(hour) * time.Hour)
		w.clock.set(now)
		if isQuietHourEdge(now) {
			w.measured = append(w.measured, now)
			w.event(object{
				"event_type": "measurement.created", "device_id": weekMarks["device"][0], "patient_id": weekMarks["gateway id"][0], "measurement_type": "blood_pressure",
				"values": object{"systolic": 151, "diastolic": 93}, "unit": "mmHg",
			}, http.StatusOK)
		}
		if happen := happening[hour]; happen != nil {
			happen()
		}
		w.run(hourly...)
		local := w.clock.Now().In(newYork)
		if local.Hour()%4 == 0 {
			w.run(fourth...)
		}
		if name := daily[local.Hour()]; name != "" {
			w.run(name)
		}
		if local.Weekday() == time.Sunday && local.Hour() == 3 {
			w.run(tokenDay)
		}
		w.awaitAnnouncements()
	}
	if failed := w.count("SELECT COUNT(*) FROM job_runs WHERE status != 'succeeded'"); failed != 0 {
		w.t.Errorf("%d jobs failed: %s", failed, fmt.Sprint(w.failures()))
	}
}

func (w *week) failures() (names []string) {
	if err := w.app.DB().NewQuery("SELECT DISTINCT job FROM job_runs WHERE status != 'succeeded'").Column(&names); err != nil {
		w.t.Error(err)
	}
	return names
}
