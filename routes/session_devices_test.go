package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// handover is a clinic that notifies its clinical manager of every alert, on devices that sign in and out.
type handover struct {
	*clinic
	dispatcher *notifications.Dispatcher
	patient    string
	alerts     int
}

// phone is a session of the clinical manager.
type phone struct{ access, refresh string }

func newHandover(t *testing.T) *handover {
	t.Helper()
	c, dispatcher := newPushClinic(t)
	return &handover{clinic: c, dispatcher: dispatcher, patient: c.enroll(nil)}
}

func (h *handover) signIn(more ...string) phone {
	h.t.Helper()
	signed := h.login(h.people[authz.ClinicalManager].Email(), vigiltest.Password, more...).want(200)
	return phone{signed.text("access"), signed.text("refresh")}
}

func (h *handover) renew(p phone) phone {
	h.t.Helper()
	next := h.send("", "POST", "/auth/token/refresh/", object{"refresh": p.refresh}).want(200)
	return phone{next.text("access"), next.text("refresh")}
}

func (h *handover) register(p phone, device string) reply {
	h.t.Helper()
	return h.send(p.access, "POST", "/notifications/tokens/register/", object{
		"token": "simulator of " + device, "type": "development", "device_id": device, "platform": "ios",
	})
}

func (h *handover) signOut(p phone, more ...string) {
	h.t.Helper()
	body := object{"refresh": p.refresh}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	h.send(p.access, "POST", "/auth/logout/", body).want(204)
}

// notifiedDevices raises a critical alert and returns the names of the notified devices.
func (h *handover) notifiedDevices() string {
	h.t.Helper()
	h.alerts++
	err := notifications.Announce(h.app, notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: "critical", PatientID: h.patient, AlertID: "000000000000007", Body: "188/121", Key: strings.Repeat("x", h.alerts),
	}, h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	before := h.pushed()
	if _, err := h.dispatcher.SendDue(h.t.Context(), h.app); err != nil {
		h.t.Fatal(err)
	}
	notified := h.pushed()[len(before):]
	slices.Sort(notified)
	return strings.Join(notified, " ")
}

func (h *handover) pushed() (devices []string) {
	h.t.Helper()
	err := h.app.DB().NewQuery(`SELECT t.device_id FROM push_deliveries d JOIN push_tokens t ON t.id = d.push_token WHERE d.status = 'sent' AND d.title LIKE 'Critical: %' ORDER BY d.id`).Column(&devices)
	if err != nil {
		h.t.Fatal(err)
	}
	return devices
}

func (h *handover) wantNotified(what, devices string) {
	h.t.Helper()
	if got := h.notifiedDevices(); got != devices {
		h.t.Errorf("%s: a critical alert is pushed to %q, want %q", what, got, devices)
	}
}

// A phone that is handed over receives no pushes once its user has signed out, with only the refresh token, as the
// contract states.
func TestLogoutStopsPushes(t *testing.T) {
	w := newHandover(t)
	shared, own := w.signIn(), w.signIn()
	w.register(shared, "shared").want(201)
	w.register(own, "own").want(201)
	w.wantNotified("both signed in", "own shared")
	w.signOut(shared)
	w.wantNotified("the shared phone signed out", "own")
	w.signOut(own)
	w.wantNotified("no one signed in", "")
}

// A logout works with each of the session's refresh tokens: the newest, replaced ones, and an expired one.
func TestLogoutByAnOlderToken(t *testing.T) {
	for name, leave := range map[string]func(w *handover, first phone){
		"swapped twice since": func(w *handover, first phone) {
			newest := w.renew(w.renew(first))
			w.signOut(phone{newest.access, first.refresh})
		},
		"the newest": func(w *handover, first phone) { w.signOut(w.renew(w.renew(first))) },
		"expired": func(w *handover, first phone) {
			w.now = w.now.Add(25 * time.Hour)
			w.signOut(phone{w.signIn().access, first.refresh})
		},
		"after its family was ended as stolen": func(w *handover, first phone) {
			second := w.renew(first)
			w.renew(second)
			w.send("", "POST", "/auth/token/refresh/", object{"refresh": first.refresh}).want(401, "token_reused")
			w.send(second.access, "GET", "/auth/profile/", nil).want(401, "token_revoked")
			w.signOut(phone{w.signIn().access, first.refresh})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHandover(t)
			first := w.signIn()
			w.register(first, "shared").want(201)
			w.wantNotified("signed in", "shared")
			leave(w, first)
			w.wantNotified("signed out", "")
		})
	}
}

// A device is registered to the session that registered it last, under any name.
func TestDeviceBelongsToItsLastSession(t *testing.T) {
	w := newHandover(t)
	earlier := w.signIn("device_id", "shared")
	w.register(earlier, "shared").want(201)
	later := w.signIn("device_id", "shared")
	w.register(later, "shared").want(200)
	w.signOut(earlier)
	w.wantNotified("the earlier session has ended", "shared")
	third := w.signIn()
	w.signOut(third, "device_id", "shared")
	w.wantNotified("another session names the device", "")
}

// Two users take turns at one browser: the push subscription belongs to the last to register it, and is not restored at
// the next sign-in.
func TestSharedBrowser(t *testing.T) {
	w := newHandover(t)
	manager := w.signIn()
	w.register(manager, "shared").want(201)
	nurse := w.login(w.people[authz.Nurse].Email(), vigiltest.Password).want(200)
	w.register(phone{access: nurse.text("access")}, "shared").want(201)
	w.wantNotified("taken over", "")
	w.signOut(manager)
	if own := w.send(nurse.text("access"), "GET", "/notifications/tokens/", nil).results(); len(own) != 1 {
		t.Errorf("the nurse's registration fell with the manager's session: %v", own)
	}
}

// Ending all sessions removes all devices, including those without a known session.
func TestEndingAllSessionsStopsPushes(t *testing.T) {
	for name, end := range map[string]func(w *handover, p phone){
		"new password": func(w *handover, p phone) {
			w.send(p.access, "POST", "/auth/password/change/", object{
				"old_password": vigiltest.Password, "new_password": newPassword, "new_password_confirm": newPassword,
			}).want(200)
		},
		"logout everywhere":   func(w *handover, p phone) { w.send(p.access, "POST", "/auth/logout-all/", nil).want(204) },
		"by an administrator": func(w *handover, _ phone) { w.manage("logout/", 200) },
		"deactivated":         func(w *handover, _ phone) { w.manage("deactivate/", 200) },
		"another role, and back": func(w *handover, _ phone) {
			for _, role := range []authz.Role{authz.Nurse, authz.ClinicalManager} {
				w.request(authz.Admin, "PATCH", w.accountPath(), object{"role": role, "current_password": vigiltest.Password}).want(200)
			}
		},
		"in the dashboard": func(w *handover, _ phone) {
			user := w.people[authz.ClinicalManager]
			user.SetPassword(newPassword)
			if err := w.app.Save(user); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHandover(t)
			one, two := w.signIn(), w.signIn()
			w.register(one, "one").want(201)
			w.register(two, "two").want(201)
			w.request(authz.ClinicalManager, "POST", "/notifications/tokens/register/", object{
				"token": "of old", "type": "development", "device_id": "old", "platform": "ios",
			}).want(201)
			w.request(authz.Nurse, "POST", "/notifications/tokens/register/", object{
				"token": "somebody else's", "type": "development", "device_id": "one", "platform": "ios",
			}).want(201)
			end(w, one)
			if name == "deactivated" {
				w.manage("activate/", 200)
			}
			w.wantNotified("afterwards", "")
			var left []string
			if err := w.app.DB().NewQuery(`SELECT token_hint FROM push_tokens WHERE active = TRUE`).Column(&left); err != nil || len(left) != 1 {
				t.Errorf("active tokens %v, %v; want only the nurse's", left, err)
			}
		})
	}
}

// An access token outlives its session by up to a quarter of an hour. It cannot register a device in that time, since no
// logout would remove it.
func TestNothingIsRegisteredAfterLogout(t *testing.T) {
	w := newHandover(t)
	shared := w.signIn()
	w.register(shared, "shared").want(201)
	w.signOut(shared)
	w.register(shared, "shared").want(401, "token_revoked")
	w.send(shared.access, "GET", "/auth/profile/", nil).want(200)
	w.wantNotified("after the attempt", "")
}

// A refresh token reuse that indicates theft ends the session; the phone keeps receiving pushes until its owner decides.
func TestStolenTokenKeepsPushes(t *testing.T) {
	w := newHandover(t)
	first := w.signIn()
	w.register(first, "own").want(201)
	w.renew(w.renew(first))
	w.send("", "POST", "/auth/token/refresh/", object{"refresh": first.refresh}).want(401, "token_reused")
	w.wantNotified("ended as stolen", "own")
}

// A session that expires unused is not a logout.
func TestExpiredSessionKeepsPushes(t *testing.T) {
	w := newHandover(t)
	w.register(w.signIn(), "own").want(201)
	w.now = w.now.Add(8 * 24 * time.Hour)
	w.wantNotified("a week later", "own")
}

// A logout by another user removes no device.
func TestOtherUsersLogoutKeepsPushes(t *testing.T) {
	w := newHandover(t)
	own := w.signIn()
	w.register(own, "own").want(201)
	w.request(authz.Admin, "POST", "/auth/logout/", object{"refresh": own.refresh, "device_id": "own"}).want(204)
	w.request(authz.ClinicalManager, "POST", "/auth/logout/", object{"refresh": "rt_" + strings.Repeat("A", 43)}).want(204)
	w.wantNotified("others signed out", "own")
}

func (h *handover) manage(action string, want int) {
	h.t.Helper()
	h.request(authz.Admin, "POST", h.accountPath()+action, nil).want(want)
}

// accountPath returns the path of the clinical manager's account.
func (h *handover) accountPath() string {
	h.t.Helper()
	var number string
	err := h.app.DB().NewQuery(`SELECT CAST(CAST(id AS INTEGER) AS TEXT) FROM users WHERE id = {:id}`).Bind(dbx.Params{"id": h.people[authz.ClinicalManager].Id}).Row(&number)
	if err != nil {
		h.t.Fatal(err)
	}
	return "/users/" + number + "/"
}
