package notifications_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A push can be decrypted only by the browser it is for, is signed, and contains no patient data.
func TestPushIsEncryptedAndSigned(t *testing.T) {
	w := newPractice(t)
	nurse := w.member(authz.Nurse)
	phone, laptop := w.device(nurse, "/phone"), w.device(nurse, "/laptop")
	w.critical("1")
	if done := w.send(); done.Announced != 1 || done.Sent != 2 {
		t.Fatalf("%+v", done)
	}
	got := w.service.got("/phone")
	if len(got) != 1 || len(w.service.got("/laptop")) != 1 {
		t.Fatal(len(got), "requests")
	}
	message, err := phone.open(got[0].body)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"title": "Critical: abnormal reading", "body": "A patient has an abnormal reading that needs attention.", "channel": "alerts",
		"notification_id": 1.0, "url": "/?notification=1",
	}
	if diff := cmp.Diff(want, message); diff != "" {
		t.Error(diff)
	}
	if _, err := laptop.open(got[0].body); err == nil {
		t.Error("another browser can decrypt it")
	}
	h := got[0].header
	if h.Get("Content-Encoding") != "aes128gcm" || h.Get("TTL") != "14400" || h.Get("Urgency") != "normal" || len(h.Get("Topic")) != 32 {
		t.Errorf("headers: %v", h)
	}
	checkVAPID(t, h.Get("Authorization"), w.push.PublicKey("web_push_dev"), w.service.URL, "https://example.org/contact")

	w.critical("1") // the same event
	w.critical("2") // another of the same patient
	w.send()
	if again := w.service.got("/phone"); len(again) != 2 || again[1].header.Get("Topic") != h.Get("Topic") {
		t.Errorf("%d pushes", len(again))
	}
}

// An alert and its escalation are one event: a recipient of both gets one push, but both list entries.
func TestOnePushForAnEscalatedAlert(t *testing.T) {
	w := newPractice(t)
	nurse, provider := w.member(authz.Nurse), w.member(authz.Provider)
	if _, err := w.app.DB().Update("patients", dbx.Params{"primary_provider": provider.Id}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	w.device(provider, "/provider")
	w.device(nurse, "/nurse")
	if err := alertOf(w); err != nil {
		t.Fatal(err)
	}
	alert := collections.NumberID(1)
	w.announce(notifications.Announcement{Kind: notifications.AlertRaised, Severity: "critical", PatientID: w.patient, AlertID: alert, Key: "a"})
	w.announce(notifications.Announcement{Kind: notifications.EscalationOpened, Severity: "critical", PatientID: w.patient, AlertID: alert, Key: "e"})
	w.send()
	if rows := w.pushes(provider); len(rows) != 1 || rows[0].Title != "Stat escalation: abnormal blood pressure" {
		t.Errorf("the provider got %+v", rows)
	}
	if rows := w.pushes(nurse); len(rows) != 1 || rows[0].Title != "Critical: abnormal blood pressure" {
		t.Errorf("the nurse got %+v", rows)
	}
	if list := w.list(provider); len(list) != 2 {
		t.Errorf("the provider's list has %v", list)
	}
}

// Only a delivered or pending push covers a similar alert shortly afterward.
func TestUndeliveredPushCoversNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		kind   notifications.Kind // of the first
		status int                // the push service's answer to it
		first  string
		pushes int // in all
	}{
		"sent":                       {notifications.AlertRaised, http.StatusCreated, "sent", 1},
		"pending":                    {notifications.AlertRaised, http.StatusServiceUnavailable, "pending", 1},
		"gone":                       {notifications.AlertRaised, http.StatusGone, "expired_token", 2},
		"refused":                    {notifications.AlertRaised, http.StatusForbidden, "failed", 3},
		"an escalation":              {notifications.EscalationOpened, http.StatusCreated, "sent", 1},
		"a pending escalation":       {notifications.EscalationOpened, http.StatusServiceUnavailable, "pending", 1},
		"an escalation that is gone": {notifications.EscalationOpened, http.StatusGone, "expired_token", 2},
		"a refused escalation":       {notifications.EscalationOpened, http.StatusForbidden, "failed", 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPractice(t)
			provider := w.member(authz.Provider)
			if _, err := w.app.DB().Update("patients", dbx.Params{"primary_provider": provider.Id}, nil).Execute(); err != nil {
				t.Fatal(err)
			}
			w.device(provider, "/old")
			w.service.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) { rw.WriteHeader(c.status) }
			if err := alertOf(w); err != nil {
				t.Fatal(err)
			}
			w.announce(notifications.Announcement{Kind: c.kind, Severity: "critical", PatientID: w.patient, AlertID: collections.NumberID(1), Key: "1"})
			w.send()
			if rows := w.pushes(provider); len(rows) != 1 || rows[0].Status != c.first {
				t.Fatalf("the first: %+v", rows)
			}
			w.now = w.now.Add(5 * time.Minute)
			w.register(provider, "development", "new", "simulator")
			w.announce(notifications.Announcement{
				Kind: notifications.AlertRaised, Severity: "critical", PatientID: w.patient, AlertID: secondAlertOf(w), Key: "2",
			})
			w.send()
			rows := w.pushes(provider)
			if len(rows) != c.pushes || c.pushes > 1 && (rows[c.pushes-1].Status != "sent" || rows[c.pushes-1].Title != "Critical: abnormal blood pressure") {
				t.Errorf("%+v", rows)
			}
		})
	}
}

// A wrong record at the EMR is an urgent task; a failed delivery is a system notice.
func TestEMRProblemRecipients(t *testing.T) {
	w := newPractice(t)
	admin := vigiltest.User(t, w.app, authz.Admin)
	w.device(w.member(authz.Provider), "/provider")
	w.device(admin, "/admin")
	w.announce(notifications.Announcement{Kind: notifications.EMRCopyWrong, Severity: "critical", PatientID: w.patient, Key: "1"})
	w.announce(notifications.Announcement{Kind: notifications.DeliveryDeadLettered, Severity: "warning", Key: "2"})
	w.send()
	if got := w.service.got("/provider"); len(got) != 1 || got[0].header.Get("Urgency") != "high" {
		t.Errorf("the provider got %d pushes", len(got))
	}
	if rows := w.pushes(admin); len(rows) != 1 || rows[0].Title != "System notice" {
		t.Errorf("the administrator got %+v", rows)
	}
}

// Text that was written into a push record by hand is sanitized before it is sent.
func TestPushIsSanitizedRegardlessOfOrigin(t *testing.T) {
	w := newPractice(t)
	nurse := w.member(authz.Nurse)
	phone := w.device(nurse, "/phone")
	w.service.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) { rw.WriteHeader(http.StatusServiceUnavailable) }
	w.critical("1")
	w.send()
	_, err := w.app.DB().Update("push_deliveries", dbx.Params{"title": "Mummelsee", "body": "Ms. Mummelsee has BP 190/120 mmHg, call 555-123-4567"}, nil).Execute()
	if err != nil {
		t.Fatal(err)
	}
	w.service.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) { rw.WriteHeader(http.StatusCreated) }
	w.now = w.now.Add(time.Minute)
	w.send()
	requests := w.service.got("/phone")
	message, err := phone.open(requests[len(requests)-1].body)
	if err != nil || len(requests) != 2 {
		t.Fatal(len(requests), err)
	}
	if message["title"] != "Clinical alert" || message["body"] != "a patient has abnormal blood pressure, call" {
		t.Errorf("sent %v", message)
	}
}

func TestPushServiceResponses(t *testing.T) {
	status := func(code int, header ...string) func(http.ResponseWriter, *http.Request, int) {
		return func(rw http.ResponseWriter, _ *http.Request, _ int) {
			for i := 0; i+1 < len(header); i += 2 {
				rw.Header().Set(header[i], header[i+1])
			}
			rw.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		answer   func(http.ResponseWriter, *http.Request, int)
		status   string
		next     time.Duration // of the first retry
		requests int           // in total, after an hour
		active   bool
	}{
		"201":              {status(201), "sent", 0, 1, true},
		"202":              {status(202), "sent", 0, 1, true},
		"404":              {status(404), "expired_token", 0, 1, false},
		"410":              {status(410), "expired_token", 0, 1, false},
		"400":              {status(400), "failed", 0, 1, true},
		"403":              {status(403), "failed", 0, 1, true},
		"307":              {status(307, "Location", "/elsewhere"), "failed", 0, 1, true},
		"500":              {status(500), "failed", 30 * time.Second, 4, true},
		"429":              {status(429, "Retry-After", "77"), "failed", 77 * time.Second, 4, true},
		"429 for too long": {status(429, "Retry-After", "999999"), "failed", 0, 1, true},
		"413 for ever":     {status(413), "failed", 0, 2, true},
		"413 once": {func(rw http.ResponseWriter, _ *http.Request, earlier int) {
			rw.WriteHeader([]int{413, 201}[min(earlier, 1)])
		}, "sent", 0, 2, true},
		"503, then 201": {func(rw http.ResponseWriter, _ *http.Request, earlier int) {
			rw.WriteHeader([]int{503, 201}[min(earlier, 1)])
		}, "sent", 30 * time.Second, 2, true},
		"none": {func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }, "failed", 30 * time.Second, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPractice(t)
			nurse := w.member(authz.Nurse)
			w.device(nurse, "/phone")
			w.service.answer = c.answer
			w.critical("1")
			w.send()
			first := w.pushes(nurse)[0]
			next := collections.ParseInstant(first.Next).Sub(w.now)
			if first.Next == "" {
				next = 0
			}
			if next != c.next {
				t.Errorf("retried after %v, want %v", next, c.next)
			}
			for range 60 {
				w.now = w.now.Add(time.Minute)
				w.send()
			}
			if got := w.pushes(nurse)[0]; got.Status != c.status {
				t.Errorf("ends as %+v, want %s", got, c.status)
			}
			if got := len(w.service.got("")); got != c.requests {
				t.Errorf("%d requests, want %d", got, c.requests)
			}
			if tokens, err := collections.ActivePushTokens(w.app, []string{nurse.Id}); err != nil || (len(tokens) == 1) != c.active {
				t.Errorf("%d active tokens, %v", len(tokens), err)
			}
		})
	}
}

// Administrators are notified of a refusal once a day.
func TestRefusalNotifiesAdministrators(t *testing.T) {
	w := newPractice(t)
	admin := vigiltest.User(t, w.app, authz.Admin)
	nurse := w.member(authz.Nurse)
	w.device(nurse, "/phone")
	w.service.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) { rw.WriteHeader(http.StatusForbidden) }
	w.critical("1")
	w.critical("2")
	w.send()
	w.send()
	if diff := cmp.Diff([]string{"system_health"}, w.list(admin)); diff != "" {
		t.Error(diff)
	}
	refused := func() bool {
		tokens, err := collections.ActivePushTokens(w.app, []string{nurse.Id})
		if err != nil || len(tokens) != 1 {
			t.Fatalf("%d active tokens, %v", len(tokens), err)
		}
		return tokens[0].Refused()
	}
	if !refused() {
		t.Error("the token is not marked as refused")
	}
	w.service.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) { rw.WriteHeader(http.StatusCreated) }
	w.critical("3")
	w.send()
	if refused() {
		t.Error("a delivered push leaves the mark")
	}
}

// A push service that hangs does not delay the others, and its pushes are retried.
func TestHangingPushService(t *testing.T) {
	w := newPractice(t)
	nurse := w.member(authz.Nurse)
	w.device(nurse, "/hangs")
	w.device(nurse, "/answers")
	held, release := make(chan struct{}), make(chan struct{})
	w.service.answer = func(rw http.ResponseWriter, r *http.Request, earlier int) {
		if r.URL.Path == "/hangs" && earlier == 0 {
			close(held)
			<-release
			panic(http.ErrAbortHandler)
		}
		rw.WriteHeader(http.StatusCreated)
	}
	w.critical("1")
	w.push.Client(true).Timeout = 0 // requests may hang for the whole test
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx, w.app) }()
	<-held
	w.Attach(w.app)
	w.critical("2") // wakes the dispatcher
	waitFor(t, func() bool { return len(w.service.got("/answers")) == 2 })
	close(release)
	waitFor(t, func() bool {
		return w.pushes(nurse)[0].Next > collections.FormatInstant(w.now) && w.pushes(nurse)[0].Status == "pending"
	})
	stop()
	<-ended
	w.now = w.now.Add(5 * time.Minute)
	w.send()
	for _, push := range w.pushes(nurse) {
		if push.Status != "sent" {
			t.Errorf("%+v", push)
		}
	}
}

// The next process finishes what was in progress at a crash.
func TestRestart(t *testing.T) {
	w := newPractice(t)
	nurse := w.member(authz.Nurse)
	w.device(nurse, "/phone")
	w.critical("1")
	claimed, err := collections.LeasePushes(w.app, w.now, w.now.Add(time.Minute), 10)
	if err != nil || len(claimed) != 0 {
		t.Fatal(claimed, err)
	}
	// One recipient notified, announcement not closed.
	if err := collections.InsertNotification(w.app, collections.NotificationDraft{
		User: nurse.Id, Channel: "alerts", Type: "threshold_critical", Severity: "critical", Title: "t", Body: "b", Patient: w.patient, DedupeKey: "1", InApp: true,
	}, w.now); err != nil {
		t.Fatal(err)
	}
	w.send()
	w.send()
	if len(w.list(nurse)) != 1 || len(w.service.got("")) != 1 {
		t.Errorf("%v on the list, %d pushes", w.list(nurse), len(w.service.got("")))
	}
}

// A signed-out device gets nothing, not even pushes planned before.
func TestSignedOutDevice(t *testing.T) {
	w := newPractice(t)
	nurse := w.member(authz.Nurse)
	w.device(nurse, "/phone")
	w.service.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) { rw.WriteHeader(http.StatusBadGateway) }
	w.critical("1")
	w.send()
	if _, err := collections.DeactivatePushTokens(w.app, nurse.Id, "device/phone", "logout", w.now); err != nil {
		t.Fatal(err)
	}
	w.critical("2")
	w.now = w.now.Add(time.Minute)
	w.send()
	if got := len(w.service.got("")); got != 1 {
		t.Errorf("%d pushes", got)
	}
	if rows := w.pushes(nurse); len(rows) != 1 || rows[0].Status != "expired_token" || len(w.list(nurse)) != 2 {
		t.Errorf("%+v, %v", rows, w.list(nurse))
	}
}

// Notifications, announcements and tokens are encrypted in the database.
func TestSealedAtRest(t *testing.T) {
	w := newPractice(t)
	nurse := w.member(authz.Nurse)
	w.device(nurse, "/phone")
	w.critical("1")
	w.send()
	var texts []string
	err := w.app.DB().NewQuery(`SELECT title || body FROM notifications UNION ALL SELECT body FROM announcements UNION ALL SELECT token || token_hash FROM push_tokens`).Column(&texts)
	if err != nil || len(texts) != 3 || strings.Contains(strings.Join(texts, ""), "Mummelsee") || strings.Contains(strings.Join(texts, ""), "phone") {
		t.Errorf("%v: %v", texts, err)
	}
}

func waitFor(t *testing.T, met func() bool) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); !met(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatal("never")
		}
	}
}
