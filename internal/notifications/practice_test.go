package notifications_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var newYork = func() *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return zone
}()

// practice is a practice with a patient, a push service and a dispatcher.
type practice struct {
	t       testing.TB
	app     *tests.TestApp
	now     time.Time
	service *pushService
	push    *notifications.Push
	*notifications.Dispatcher
	patient string
}

func newPractice(t testing.TB) *practice {
	t.Helper()
	w := &practice{t: t, app: vigiltest.NewApp(t), now: vigiltest.Clock, service: newPushService(t)}
	w.push = notifications.NewPush(notifications.PushOptions{
		Keys: newKeys(t, "mailto:postmaster@example.org"), DevKeys: newKeys(t, "https://example.org/contact"),
		Hosts: []string{"fcm.googleapis.com", "*.push.apple.com"}, DevHosts: []string{w.service.host()},
	})
	w.Dispatcher = notifications.NewDispatcher(notifications.DispatcherOptions{
		Push: w.push, Zone: newYork, Clock: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler),
	})
	w.patient = w.enroll("Quendolin", "Mummelsee", "")
	return w
}

func (w *practice) enroll(first, last, provider string) string {
	w.t.Helper()
	p, err := collections.NewPatient(w.app)
	if err != nil {
		w.t.Fatal(err)
	}
	for field, value := range map[string]any{
		"first_name": first, "last_name": last, "date_of_birth": "1950-01-02", "gender": "female", "mrn": "MRN-" + last, "active": true,
		"primary_provider": provider, "created_at": collections.FormatInstant(w.now),
	} {
		p.Set(field, value)
	}
	if err := w.app.Save(p); err != nil {
		w.t.Fatal(err)
	}
	return p.Id
}

// member adds a user to the patient's care team.
func (w *practice) member(role authz.Role, options ...vigiltest.UserOption) *collections.User {
	w.t.Helper()
	user := vigiltest.User(w.t, w.app, role, options...)
	m, err := collections.NewCareTeamMember(w.app, w.patient, user.Id)
	if err == nil {
		m.Set("created_at", collections.FormatInstant(w.now))
		err = w.app.Save(m)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return user
}

// device registers a browser of the user at a path of the push service.
func (w *practice) device(user *collections.User, path string) *browser {
	w.t.Helper()
	b := newBrowser(w.t)
	w.register(user, "web_push_dev", "device"+path, b.subscribe(w.service.URL+path))
	return b
}

func (w *practice) register(user *collections.User, kind, device, token string) *collections.PushToken {
	w.t.Helper()
	raw, err := json.Marshal(token)
	if err != nil {
		w.t.Fatal(err)
	}
	registered, _, err := w.push.Register(w.app, user.Id, "", notifications.RegisterBody{
		Token: raw, Type: validate.Of(kind), DeviceID: validate.Of(device), Platform: validate.Of("web"),
	}, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	return registered
}

func (w *practice) announce(a notifications.Announcement) {
	w.t.Helper()
	if err := notifications.Announce(w.app, a, w.now); err != nil {
		w.t.Fatal(err)
	}
}

// critical announces a critical reading of the patient.
func (w *practice) critical(key string) {
	w.t.Helper()
	w.announce(notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: "critical", PatientID: w.patient, Body: "Quendolin Mummelsee: 190/120 mmHg", Key: key,
	})
}

func (w *practice) send() notifications.PushCounts {
	w.t.Helper()
	done, err := w.SendDue(w.t.Context(), w.app)
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

// choose changes a person's preferences with a JSON body.
func (w *practice) choose(user *collections.User, body string) {
	w.t.Helper()
	var change notifications.PreferencesBody
	if err := json.Unmarshal([]byte(body), &change); err != nil {
		w.t.Fatal(err)
	}
	if _, err := notifications.ChangePreferences(w.app, user.Id, change, newYork, w.now); err != nil {
		w.t.Fatal(err)
	}
}

// row is a stored push.
type row struct {
	Status   string `db:"status"`
	Code     *int   `db:"status_code"`
	Attempts int    `db:"attempts"`
	Next     string `db:"next_attempt_at"`
	Title    string `db:"title"`
	Body     string `db:"body"`
}

func (w *practice) pushes(user *collections.User) (rows []row) {
	w.t.Helper()
	err := w.app.DB().Select("status", "status_code", "attempts", "next_attempt_at", "title", "body").From("push_deliveries").
		Where(dbx.HashExp{"user": user.Id}).OrderBy("id").All(&rows)
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// list returns the types of the notifications on a user's list.
func (w *practice) list(user *collections.User) (types []string) {
	w.t.Helper()
	page, _, _, err := collections.PageOfInbox(w.app, collections.Inbox{User: user.Id}, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, entry := range page {
		types = append(types, entry.GetString("type"))
	}
	return types
}

// alertOf stores a critical alert of the patient from the evening.
func alertOf(w *practice) error {
	return storeAlert(w, collections.NumberID(1), "2026-01-16T02:00:00.000000Z")
}

// secondAlertOf stores a similar alert at the current time.
func secondAlertOf(w *practice) string {
	w.t.Helper()
	id := collections.NumberID(2)
	if err := storeAlert(w, id, collections.FormatInstant(w.now)); err != nil {
		w.t.Fatal(err)
	}
	return id
}

func storeAlert(w *practice, id, at string) error {
	_, err := w.app.DB().Insert("alerts", dbx.Params{
		"id": id, "patient": w.patient, "level": "critical", "type": "blood_pressure", "status": "active", "created_at": at,
	}).Execute()
	return err
}

func answerGone(rw http.ResponseWriter, r *http.Request, _ int) {
	if r.URL.Path == "/gone" {
		rw.WriteHeader(http.StatusGone)
		return
	}
	rw.WriteHeader(http.StatusCreated)
}
