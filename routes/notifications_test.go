package routes_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/routes"
)

// newPushClinic returns a clinic with one push key pair, and its dispatcher.
func newPushClinic(t *testing.T, change ...func(*routes.Engines)) (*clinic, *notifications.Dispatcher) {
	t.Helper()
	push := notifications.NewPush(notifications.PushOptions{DevKeys: notifications.PushKeys{Public: "public", Private: "private"}})
	c := newClinic(t, append(change, func(e *routes.Engines) { e.Push = push })...)
	return c, notifications.NewDispatcher(notifications.DispatcherOptions{
		Push: push, Zone: newYork, Clock: func() time.Time { return c.now }, Log: slog.New(slog.DiscardHandler),
	})
}

func TestInbox(t *testing.T) {
	c, dispatcher := newPushClinic(t)
	patient := c.enroll(nil)
	c.request(authz.ClinicalManager, "POST", "/notifications/tokens/register/", object{
		"token": "simulator-42", "type": "development", "device_id": "phone", "platform": "ios",
	}).want(201)
	for _, key := range []string{"1", "2"} {
		err := notifications.Announce(c.app, notifications.Announcement{
			Kind: notifications.AlertRaised, Severity: "critical", PatientID: patient, AlertID: "000000000000007", Body: "Ada Lovelace: 190/120 mmHg", Key: key,
		}, c.now)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dispatcher.SendDue(t.Context(), c.app); err != nil {
		t.Fatal(err)
	}
	const path = "/notifications/"
	page := c.request(authz.ClinicalManager, "GET", path+"?unread=true&channel=alerts", nil).want(200).wantAt(object{"unread_count": 2.0})
	item := page.results()[0]
	if item["body"] != "Ada Lovelace: 190/120 mmHg" || item["patient_id"] != patient || item["alert_id"] != 7.0 || item["read"] != false {
		t.Errorf("item: %v", item)
	}
	one := path + "2/"
	c.request(authz.ClinicalManager, "GET", one, nil).want(200)
	c.request(authz.Nurse, "GET", one, nil).want(404, "not_found")
	c.request(authz.Nurse, "POST", one+"read/", nil).want(404, "not_found")
	c.request(authz.ClinicalManager, "GET", path+"999/", nil).want(404)
	first := c.request(authz.ClinicalManager, "POST", one+"read/", nil).want(200).wantAt(object{"read": true}).at("read_at")
	c.now = c.now.Add(time.Minute)
	c.request(authz.ClinicalManager, "POST", one+"read/", nil).want(200).wantAt(object{"read_at": first})
	c.request(authz.ClinicalManager, "POST", path+"read-all/", nil).want(200).wantAt(object{"updated": 1.0})
	c.request(authz.ClinicalManager, "GET", path+"?unread=1", nil).want(200).wantAt(object{"unread_count": 0.0, "count": 0.0})
	c.request(authz.ClinicalManager, "GET", path+"?unread=perhaps&channel=x&date_from=y", nil).wantFields("unread", "channel", "date_from")

	pushes := c.request(authz.Admin, "GET", path+"deliveries/?status=sent", nil).results()
	if len(pushes) != 2 || pushes[0]["body"] != "A patient has an abnormal reading that needs attention." || pushes[0]["status"] != "sent" {
		t.Errorf("pushes: %v", pushes)
	}
	c.wantRoles("GET", path+"deliveries/", nil, authz.Admin)
	c.wantRoles("GET", path, nil, authz.Roles...)
	if got := c.events(patient); !strings.Contains(strings.Join(got, " "), "notification.sent patient.read") {
		t.Errorf("audit: %v", got)
	}
}

func TestPushTokens(t *testing.T) {
	c, _ := newPushClinic(t)
	const path = "/notifications/tokens/"
	body := object{"token": "abcdefgh", "type": "apns", "device_id": "phone", "platform": "ios", "app_version": "1.0"}
	made := c.request(authz.Nurse, "POST", path+"register/", body).want(201).wantAt(object{
		"type": "apns", "active": true, "deliverable": false, "token_hint": "cdefgh", "device_id": "phone",
	})
	c.request(authz.Nurse, "POST", path+"register/", body).want(200).wantAt(object{"id": made.at("id")})
	body["token"] = "another"
	if second := c.request(authz.Nurse, "POST", path+"register/", body).want(200); second.at("id") == made.at("id") {
		t.Error("a changed token keeps the record of the old one")
	}
	if own := c.request(authz.Nurse, "GET", path, nil).results(); len(own) != 1 || own[0]["token_hint"] != "nother" {
		t.Errorf("own tokens: %v", own)
	}
	if others := c.request(authz.MA, "GET", path, nil).results(); len(others) != 0 {
		t.Errorf("others: %v", others)
	}
	c.request(authz.MA, "DELETE", path+"2/", nil).want(404, "not_found")
	c.request(authz.Nurse, "DELETE", path+"2/", nil).want(204)
	c.request(authz.Nurse, "DELETE", path+"2/", nil).want(404, "not_found")
	c.request(authz.Nurse, "POST", path+"register/", object{"type": "No!", "platform": 5}).wantFields("token", "type", "device_id", "platform")
	c.request(authz.Nurse, "POST", path+"register/", object{"token": object{"endpoint": "https://10.0.0.1/"}, "type": "web_push", "device_id": "d", "platform": "web"}).wantFields("token")

	c.request(authz.Nurse, "GET", "/notifications/vapid-public-key/", nil).want(200).wantAt(object{"public_key": "public", "type": "web_push_dev"})
	c.request(authz.Nurse, "GET", "/notifications/vapid-public-key/?type=web_push", nil).want(404, "not_found")
	c.request(authz.Nurse, "GET", "/notifications/vapid-public-key/?type=x", nil).wantFields("type")
}

func TestNotificationPreferences(t *testing.T) {
	c, _ := newPushClinic(t)
	const path = "/users/me/notification-preferences/"
	c.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{
		"channels.alerts.push": true, "channels.alerts.subtypes.device": true, "channels.daily_digest.time": "07:00", "quiet_hours.enabled": false,
		"quiet_hours.start": "22:00", "quiet_hours.end": "07:00", "time_zone": "America/New_York",
	})
	c.request(authz.Nurse, "PATCH", path, object{
		"channels":    object{"alerts": object{"subtypes": object{"device": false}}, "daily_digest": object{"time": "06:30", "push": false}},
		"quiet_hours": object{"enabled": true, "exceptions": []string{"reminders", "reminders"}}, "time_zone": "Europe/Berlin",
	}).want(200)
	all := c.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{
		"channels.alerts.push": true, "channels.alerts.subtypes.device": false, "channels.alerts.subtypes.system_health": true,
		"channels.daily_digest.time": "06:30", "channels.daily_digest.push": false, "channels.daily_digest.in_app": true,
		"quiet_hours.enabled": true, "quiet_hours.start": "22:00", "time_zone": "Europe/Berlin",
	})
	if exceptions, _ := all.at("quiet_hours.exceptions").([]any); len(exceptions) != 2 || exceptions[0] != "escalations" {
		t.Errorf("exceptions: %v", exceptions)
	}
	c.request(authz.Nurse, "PATCH", path, object{
		"channels": object{
			"escalations": object{"push": false}, "pigeons": object{}, "reminders": 5, "daily_digest": object{"time": "7:00"},
			"alerts": object{"push": nil, "subtypes": object{"weather": true, "device": "no"}},
		},
		"quiet_hours": object{"start": "25:00", "exceptions": []string{"pigeons"}}, "time_zone": "Mars/Olympus",
	}).wantFields("channels.escalations", "channels.pigeons", "channels.reminders", "channels.daily_digest.time", "channels.alerts.push",
		"channels.alerts.subtypes.weather", "channels.alerts.subtypes.device", "quiet_hours.start", "quiet_hours.exceptions", "time_zone")
	c.request(authz.Nurse, "PATCH", path, object{"quiet_hours": object{"start": "07:00"}}).wantFields("quiet_hours.end")
	c.request(authz.MA, "GET", path, nil).want(200).wantAt(object{"quiet_hours.enabled": false})
}
