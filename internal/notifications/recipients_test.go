package notifications_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Recipients by event and care team.
func TestRecipients(t *testing.T) {
	w := newPractice(t)
	people := map[string]*collections.User{}
	for _, role := range authz.Roles {
		people[string(role)] = vigiltest.User(t, w.app, role)
	}
	people["portal"] = vigiltest.User(t, w.app, authz.Patient, vigiltest.PortalOf(w.patient))
	people["team nurse"] = w.member(authz.Nurse)
	w.member(authz.Nurse, vigiltest.Inactive())
	w.member(authz.DataMonitor)
	assigned := vigiltest.User(t, w.app, authz.MA)
	people["assigned"] = assigned
	alone := w.enroll("Otto", "Niemandskind", people["provider"].Id)
	unassigned := w.enroll("Ida", "Waisenkind", "")
	insert := func(id, patient, to string) {
		_, err := w.app.DB().Insert("escalations", dbx.Params{"id": id, "patient": patient, "priority": "stat", "status": "open", "created_by": to + "@", "assigned_to": to}).Execute()
		if err != nil {
			t.Fatal(err)
		}
	}
	insert("000000000000001", alone, assigned.Email())
	insert("000000000000002", alone, "")
	type a = notifications.Announcement
	for _, c := range []struct {
		announcement a
		want         string
	}{
		{a{Kind: notifications.AlertRaised, PatientID: w.patient}, "team nurse"},
		{a{Kind: notifications.AlertRaised, PatientID: alone}, "provider"},
		{a{Kind: notifications.DeviceAlertRaised, PatientID: unassigned}, "clinical_manager"},
		{a{Kind: notifications.ReadingMissed, PatientID: w.patient}, "portal, team nurse"},
		{a{Kind: notifications.EscalationOpened, PatientID: alone, EscalationID: "000000000000001"}, "assigned, provider"},
		{a{Kind: notifications.EscalationOpened, PatientID: alone, EscalationID: "000000000000002"}, "clinical_manager, provider"},
		{a{Kind: notifications.EscalationOverdue, PatientID: alone, EscalationID: "000000000000001"}, "assigned, clinical_manager, provider"},
		{a{Kind: notifications.EscalationOnCall, PatientID: alone, EscalationID: "000000000000001", UserID: people["nurse"].Id}, "nurse"},
		{a{Kind: notifications.EscalationUnanswered, PatientID: alone, EscalationID: "000000000000001"}, "admin, assigned, clinical_manager, provider"},
		{a{Kind: notifications.EscalationIdle, PatientID: alone, EscalationID: "000000000000001"}, "assigned, provider"},
		{a{Kind: notifications.EscalationUnnoted, PatientID: alone, EscalationID: "000000000000001", UserID: people["nurse"].Id}, "assigned, clinical_manager, nurse, provider"},
		{a{Kind: notifications.EscalationAssigned, PatientID: alone, EscalationID: "000000000000001", UserID: assigned.Id}, "assigned, provider"},
		{a{Kind: notifications.ClaimDenied, PatientID: w.patient}, "admin, data_monitor"},
		{a{Kind: notifications.AttestationNeeded, PatientID: w.patient, UserID: people["nurse"].Id}, "admin, data_monitor, nurse"},
		{a{Kind: notifications.EventQuarantined}, "admin, clinical_manager, ma"},
		{a{Kind: notifications.ServiceTrouble}, "admin"},
		{a{Kind: notifications.FollowUpDue, PatientID: w.patient, UserID: people["nurse"].Id}, "nurse"},
		{a{Kind: "of a later version"}, "admin"},
	} {
		c.announcement.Key = string(c.announcement.Kind) + c.announcement.PatientID + c.announcement.EscalationID
		c.announcement.Body = "Quendolin Mummelsee"
		before := map[string]int{}
		for name, user := range people {
			before[name] = len(w.list(user))
		}
		w.announce(c.announcement)
		w.send()
		var notified []string
		for name, user := range people {
			if len(w.list(user)) > before[name] {
				notified = append(notified, name)
			}
		}
		slices.Sort(notified)
		got := strings.ReplaceAll(strings.Join(notified, ", "), "data_monitor, ma", "data_monitor")
		if c.announcement.Kind == notifications.EventQuarantined { // the assigned MA has the role too
			got = strings.TrimPrefix(got, "admin, assigned, ")
			got = "admin, " + got
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.announcement.Kind, got, c.want)
		}
	}
	page, _, _, err := collections.PageOfInbox(w.app, collections.Inbox{User: people["portal"].Id}, 0, 10)
	if err != nil || len(page) != 1 || page[0].GetString("body") != "It is time to take your measurement." || page[0].GetString("channel") != "reminders" {
		t.Error("the portal user is not prompted to measure", err)
	}
}

// A reminder about routine work respects quiet hours; one about urgent work does not.
func TestIdleWorkChannel(t *testing.T) {
	w := newPractice(t)
	manager := vigiltest.User(t, w.app, authz.ClinicalManager)
	for severity, want := range map[string]string{"info": "reminders", "warning": "escalations", "critical": "escalations"} {
		w.announce(notifications.Announcement{Kind: notifications.EscalationUnnoted, Severity: severity, PatientID: w.patient, Body: "Quendolin", Key: severity})
		w.send()
		page, _, _, err := collections.PageOfInbox(w.app, collections.Inbox{User: manager.Id}, 0, 1)
		if err != nil || len(page) != 1 || page[0].GetString("channel") != want {
			t.Errorf("%s: %v, want %s (%v)", severity, page, want, err)
		}
	}
}

// Quiet hours use the local wall-clock time, also on days of 23 and 25 hours.
func TestQuietHours(t *testing.T) {
	night := notifications.QuietHours{Enabled: true, Start: "22:00", End: "07:00", Exceptions: []string{"escalations", "reminders"}}
	early := notifications.QuietHours{Enabled: true, Start: "01:30", End: "02:30"}
	for _, c := range []struct {
		quiet   notifications.QuietHours
		channel string
		at      string // UTC
		want    bool
	}{
		{night, "alerts", "2026-01-16T02:59:59Z", false}, // 21:59:59
		{night, "alerts", "2026-01-16T03:00:00Z", true},  // 22:00
		{night, "alerts", "2026-01-16T11:59:59Z", true},  // 06:59:59
		{night, "alerts", "2026-01-16T12:00:00Z", false}, // 07:00
		{night, "reminders", "2026-01-16T04:00:00Z", false},
		{night, "escalations", "2026-01-16T04:00:00Z", false},
		{notifications.QuietHours{Enabled: true, Start: "22:00", End: "07:00"}, "escalations", "2026-01-16T04:00:00Z", false},
		{notifications.QuietHours{Start: "22:00", End: "07:00"}, "alerts", "2026-01-16T04:00:00Z", false},
		// The night to 8 March 2026 has an hour less: 07:00 is at 11:00 UTC, not 12:00.
		{night, "alerts", "2026-03-08T10:59:59Z", true},
		{night, "alerts", "2026-03-08T11:00:00Z", false},
		{early, "alerts", "2026-03-08T06:45:00Z", true},  // 01:45
		{early, "alerts", "2026-03-08T07:00:00Z", false}, // 03:00: two o'clock is left out
		// The night to 1 November 2026 has an hour more: half past one comes twice.
		{night, "alerts", "2026-11-01T11:59:59Z", true},
		{night, "alerts", "2026-11-01T12:00:00Z", false},
		{early, "alerts", "2026-11-01T05:45:00Z", true},  // 01:45, summer time
		{early, "alerts", "2026-11-01T06:15:00Z", false}, // 01:15, winter time
		{early, "alerts", "2026-11-01T06:45:00Z", true},  // 01:45 again
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.quiet.IsSilent(c.channel, at.In(newYork)); got != c.want {
			t.Errorf("%s at %s: %v", c.channel, c.at, got)
		}
	}
}

// A user's preferences decide about pushes, except for escalations and critical alerts.
func TestPreferences(t *testing.T) {
	const quiet = `{"quiet_hours":{"enabled":true,"start":"08:00","end":"09:00"}}` // it is 08:45 in New York
	for name, c := range map[string]struct {
		choice string
		kind   notifications.Kind
		level  string
		want   string
		listed bool
	}{
		"default":              {`{}`, notifications.AlertRaised, "warning", "sent", true},
		"alerts off":           {`{"channels":{"alerts":{"push":false}}}`, notifications.AlertRaised, "warning", "skipped_preference", true},
		"alerts off, critical": {`{"channels":{"alerts":{"push":false,"in_app":false}}}`, notifications.AlertRaised, "critical", "sent", true},
		"not in the app":       {`{"channels":{"alerts":{"in_app":false}}}`, notifications.AlertRaised, "warning", "sent", false},
		"subtype off":          {`{"channels":{"alerts":{"subtypes":{"device":false}}}}`, notifications.DeviceAlertRaised, "warning", "skipped_preference", true},
		"other subtype off":    {`{"channels":{"alerts":{"subtypes":{"device":false}}}}`, notifications.AlertRaised, "warning", "sent", true},
		"quiet":                {quiet, notifications.AlertRaised, "critical", "skipped_quiet_hours", true},
		"quiet in Berlin":      {`{"time_zone":"Europe/Berlin","quiet_hours":{"enabled":true,"start":"14:00","end":"15:00"}}`, notifications.AlertRaised, "warning", "skipped_quiet_hours", true},
		"quiet but excepted":   {`{"quiet_hours":{"enabled":true,"start":"08:00","end":"09:00","exceptions":["alerts"]}}`, notifications.AlertRaised, "warning", "sent", true},
		"quiet, escalation":    {quiet, notifications.EscalationOverdue, "critical", "sent", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPractice(t)
			manager := w.member(authz.ClinicalManager)
			w.register(manager, "development", "phone", "simulator")
			w.choose(manager, c.choice)
			w.announce(notifications.Announcement{Kind: c.kind, Severity: c.level, PatientID: w.patient, Key: "1"})
			w.send()
			rows := w.pushes(manager)
			if len(rows) != 1 || rows[0].Status != c.want || (len(w.list(manager)) == 1) != c.listed {
				t.Errorf("%+v, on the list %v", rows, w.list(manager))
			}
		})
	}
}

func TestRegistration(t *testing.T) {
	w := newPractice(t)
	nurse, other := vigiltest.User(t, w.app, authz.Nurse), vigiltest.User(t, w.app, authz.Nurse)
	b := newBrowser(t)
	first := w.register(nurse, "web_push_dev", "phone", b.subscribe(w.service.URL+"/1"))
	if again := w.register(nurse, "web_push_dev", "phone", b.subscribe(w.service.URL+"/1")); again.Id != first.Id {
		t.Error("registering the same token returned another record")
	}
	second := w.register(nurse, "web_push_dev", "phone", b.subscribe(w.service.URL+"/2"))
	moved := w.register(other, "web_push_dev", "laptop", b.subscribe(w.service.URL+"/2"))
	for token, want := range map[*collections.PushToken]string{first: "replaced", second: "moved", moved: ""} {
		now, err := w.app.FindRecordById(collections.PushTokens, token.Id)
		if err != nil || now.GetString("inactive_because") != want || now.GetBool("active") != (want == "") {
			t.Errorf("token %s: %v, %q", token.Id, err, now.GetString("inactive_because"))
		}
	}
	if moved.GetString("token_hint") != "/2" && !strings.HasSuffix(w.service.URL+"/2", moved.GetString("token_hint")) {
		t.Errorf("hint %q", moved.GetString("token_hint"))
	}
}

func TestRegistrationRefused(t *testing.T) {
	w := newPractice(t)
	b := newBrowser(t)
	good := b.subscribe("https://fcm.googleapis.com/fcm/send/x")
	for name, c := range map[string]struct{ kind, token string }{
		"not JSON":       {"web_push", `"nonsense"`},
		"a list":         {"web_push", `[1]`},
		"a number":       {"web_push", `5`},
		"no token":       {"web_push", ``},
		"http":           {"web_push", b.subscribe("http://fcm.googleapis.com/x")},
		"another port":   {"web_push", b.subscribe("https://fcm.googleapis.com:8443/x")},
		"a user":         {"web_push", b.subscribe("https://a:b@fcm.googleapis.com/x")},
		"an address":     {"web_push", b.subscribe("https://127.0.0.1/x")},
		"a v6 address":   {"web_push", b.subscribe("https://[::1]/x")},
		"a number host":  {"web_push", b.subscribe("https://2130706433/x")},
		"not allowed":    {"web_push", b.subscribe("https://fcm.googleapis.com.evil.example/x")},
		"the bare apex":  {"web_push", b.subscribe("https://push.apple.com/x")},
		"a dev host":     {"web_push", b.subscribe(w.service.URL + "/x")},
		"other dev host": {"web_push_dev", b.subscribe("http://127.0.0.1:1/x")},
		"too long":       {"web_push", b.subscribe("https://fcm.googleapis.com/" + strings.Repeat("x", 2048))},
		"short key":      {"web_push", strings.Replace(good, `"p256dh":"B`, `"p256dh":"`, 1)},
		"not on curve":   {"web_push", strings.Replace(good, `"p256dh":"`, `"p256dh":"BAAA`, 1)},
		"short auth":     {"web_push", strings.Replace(good, `"auth":"`, `"auth":"","x":"`, 1)},
	} {
		raw := []byte(c.token)
		if strings.HasPrefix(c.token, "{") && name != "http" { // as text or as an object
			raw, _ = json.Marshal(c.token)
		}
		user := vigiltest.User(t, w.app, authz.Nurse)
		_, _, err := w.push.Register(w.app, user.Id, "", notifications.RegisterBody{
			Token: raw, Type: validate.Of(c.kind), DeviceID: validate.Of("d"), Platform: validate.Of("web"),
		}, w.now)
		if err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, endpoint := range []string{"https://web.push.apple.com/x", "https://fcm.googleapis.com:443/x"} {
		w.register(vigiltest.User(t, w.app, authz.Nurse), "web_push", "d", b.subscribe(endpoint))
	}
}

// Tokens are deactivated when they expire, are unused, or are unknown to the push service.
func TestTokenTestDeactivatesTokens(t *testing.T) {
	w := newPractice(t)
	nurse := vigiltest.User(t, w.app, authz.Nurse)
	gone, kept := newBrowser(t), newBrowser(t)
	w.register(nurse, "web_push_dev", "gone", gone.subscribe(w.service.URL+"/gone"))
	w.register(nurse, "web_push_dev", "kept", kept.subscribe(w.service.URL+"/kept"))
	w.register(nurse, "web_push_dev", "expired", strings.Replace(kept.subscribe(w.service.URL+"/expired"), "null", "1768500000000", 1))
	w.register(nurse, "apns", "old", "some-token")
	w.now = w.now.Add(8 * 24 * time.Hour)
	w.service.answer = answerGone
	done, err := w.TestTokens(t.Context(), w.app)
	if diff := cmp.Diff(notifications.TokenTest{Expired: 1, Tried: 2, Gone: 1}, done); diff != "" || err != nil {
		t.Error(diff, err)
	}
	request := w.service.got("/kept")[0]
	if message, err := kept.open(request.body); err != nil || message != nil || request.header.Get("TTL") != "0" || request.header.Get("Urgency") != "low" {
		t.Errorf("%v, %v, %v", message, err, request.header)
	}
	w.now = w.now.Add(85 * 24 * time.Hour)
	if done, err = w.TestTokens(t.Context(), w.app); err != nil || done.Unused != 2 {
		t.Errorf("%+v, %v", done, err)
	}
}

// Digests and reminders are announced once a day, at the user's local time, and only with content.
func TestRemind(t *testing.T) {
	w := newPractice(t)
	nurse := w.member(authz.Nurse)
	berlin := vigiltest.User(t, w.app, authz.Provider, vigiltest.With("time_zone", "Europe/Berlin"))
	monitor := vigiltest.User(t, w.app, authz.DataMonitor)
	if err := alertOf(w); err != nil {
		t.Fatal(err)
	}
	var announcedAt []string
	for at := time.Date(2026, 1, 16, 5, 0, 0, 0, time.UTC); at.Before(time.Date(2026, 1, 17, 0, 0, 0, 0, time.UTC)); at = at.Add(15 * time.Minute) {
		w.now = at
		n, err := notifications.Remind(w.app, newYork, at)
		if err != nil {
			t.Fatal(err)
		}
		w.send()
		if n > 0 {
			announcedAt = append(announcedAt, at.Format("15:04"))
		}
	}
	// 06:00 UTC is 07:00 in Berlin, 12:00 UTC is 07:00 in New York.
	if diff := cmp.Diff([]string{"06:00", "12:00"}, announcedAt); diff != "" {
		t.Error(diff)
	}
	if len(w.list(nurse)) != 1 || len(w.list(berlin)) != 1 || len(w.list(monitor)) != 0 {
		t.Errorf("%v, %v, %v", w.list(nurse), w.list(berlin), w.list(monitor))
	}
}
