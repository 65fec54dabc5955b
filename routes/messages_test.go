package routes_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// Source: docs/decisions/messages.md, "Consent".
func TestPatientMessagingFields(t *testing.T) {
	c := newClinic(t)
	path := "/patients/" + c.enroll(nil) + "/"
	channels := func() object {
		return c.request(authz.Nurse, "GET", path, nil).want(200).object()["messaging"].(object)
	}
	patch := func(body string) reply {
		return replyOf(t, body, c.call(authz.Nurse, "PATCH", path, body))
	}
	if got := channels(); got["sms"] != true || got["voice"] != false || got["consent"] != false || got["stopped_at"] != nil {
		t.Errorf("before anything is stored: %v", got)
	}
	for _, step := range []struct {
		patch                string
		language, reminder   any
		wantsSMS, wantsVoice bool
	}{
		{`{"preferred_language":"ES-mx","reminder_at":"17:30"}`, "es-MX", "17:30", true, false},
		{`{"messaging":{"voice":true}}`, "es-MX", "17:30", true, true},
		{`{"messaging":{"sms":false}}`, "es-MX", "17:30", false, true},
		{`{"messaging":{"consent":true,"stopped_at":"2026-01-15T13:45:00Z"}}`, "es-MX", "17:30", false, true},
		{`{"messaging":null,"preferred_language":null,"reminder_at":null}`, nil, nil, true, false},
	} {
		got := patch(step.patch).want(200).object()
		wants := got["messaging"].(object)
		if got["preferred_language"] != step.language || got["reminder_at"] != step.reminder || wants["sms"] != step.wantsSMS || wants["voice"] != step.wantsVoice ||
			wants["consent"] != false || wants["stopped_at"] != nil {
			t.Errorf("%s: %v, %v, %v", step.patch, got["preferred_language"], got["reminder_at"], wants)
		}
	}
	for field, values := range map[string][]string{
		"preferred_language": {`"klingonese-language"`, `"x"`, `"und"`, `7`, `"e n"`},
		"reminder_at":        {`"24:00"`, `"8:00"`, `"18:00:00"`, `"noon"`, `18`},
		"messaging":          {`"sms"`, `[]`, `true`},
		"messaging.sms":      {`{"sms":"yes"}`, `{"sms":1}`},
	} {
		for _, value := range values {
			member, _, _ := strings.Cut(field, ".")
			patch(fmt.Sprintf(`{%q:%s}`, member, value)).want(400).wantFields(field)
		}
	}

	consent := func(granted, expires string) int64 {
		made := c.request(authz.Nurse, "POST", path+"consents/", object{"type": "messaging", "method": "written", "granted_at": granted, "expires_at": expires}).want(201).object()
		return int64(made["id"].(float64))
	}
	day := func(days int) string { return c.now.AddDate(0, 0, days).Format(time.RFC3339) }
	consent(day(-10), day(-1))
	if channels()["consent"] != false {
		t.Error("an expired consent counts")
	}
	number := consent(day(-1), day(1))
	if channels()["consent"] != true {
		t.Error("a consent in force does not count")
	}
	c.request(authz.Nurse, "POST", fmt.Sprintf("%sconsents/%d/revoke/", path, number), object{"reason": "Asked us to."}).want(200)
	if channels()["consent"] != false {
		t.Error("a revoked consent counts")
	}
}

// messagingClinic is a clinic that sends by Twilio's form, to a provider with answers that the test sets.
func messagingClinic(t *testing.T) (c *clinic, twilio *twilioServer, worker *messaging.Worker) {
	t.Helper()
	twilio = &twilioServer{status: 201}
	server := httptest.NewServer(twilio)
	t.Cleanup(server.Close)
	var now func() time.Time
	worker = messaging.NewWorker(messaging.WorkerOptions{
		Provider: messaging.Twilio{
			Base: server.URL, Account: "AC1", Secret: "token", From: "+12125550100", PublicURL: "https://vigil.example.org",
			Client: egress.New(egress.Options{Timeout: 5 * time.Second, DevHosts: []string{"127.0.0.1"}}),
		},
		Clock: func() time.Time { return now() }, Log: slog.New(slog.DiscardHandler),
	})
	c = newClinic(t, func(e *routes.Engines) { e.Messages = worker })
	now = func() time.Time { return c.now }
	messaging.Enable(c.app, messaging.Practice{Name: "Hill Clinic", Hours: messaging.Hours{From: "08:00", Until: "21:00"}})
	return c, twilio, worker
}

// twilioServer answers like Twilio and keeps the requests.
type twilioServer struct {
	mu     sync.Mutex
	status int
	answer string // "" for an accepted message
	forms  []url.Values
}

func (s *twilioServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user, password, _ := r.BasicAuth(); user != "AC1" || password != "token" || r.URL.Path != "/2010-04-01/Accounts/AC1/Messages.json" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_ = r.ParseForm()
	s.forms = append(s.forms, r.PostForm)
	answer := s.answer
	if answer == "" {
		answer = fmt.Sprintf(`{"sid":"SM%d","status":"queued"}`, len(s.forms))
	}
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, answer)
}

func (s *twilioServer) sent() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms)
}

func (s *twilioServer) set(status int, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.answer = status, answer
}

func (c *clinic) consentToMessages(patient string) {
	c.t.Helper()
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/consents/", object{"type": "messaging", "method": "written", "granted_at": c.now.AddDate(0, 0, -1).Format(time.RFC3339)}).want(201)
}

// report sends a state as Twilio does, signed with a secret.
func (c *clinic) reportState(secret, message string, form url.Values) reply {
	c.t.Helper()
	target := messaging.StatusPath + "?message=" + message
	r := httptest.NewRequestWithContext(c.t.Context(), "POST", target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(messaging.TwilioSignature(secret, "https://vigil.example.org"+target, form)))
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, "POST", messaging.StatusPath, rec.Code, rec.Header(), rec.Body.Bytes())
	return replyOf(c.t.(*testing.T), "status "+form.Encode(), rec)
}

func (c *clinic) sendDue(worker *messaging.Worker) {
	c.t.Helper()
	if _, err := worker.SendDue(c.t.Context(), c.app); err != nil {
		c.t.Fatal(err)
	}
}

// A message of staff is queued, sent with the patient's number and language, and follows what the provider reports.
func TestStoryStaffMessage(t *testing.T) {
	c, twilio, worker := messagingClinic(t)
	patient := c.enroll(object{"phone": "(212) 555-0123", "preferred_language": "es-MX"})
	path := "/patients/" + patient + "/messages/"
	question := object{"template": "question"}
	if !strings.Contains(c.request(authz.Nurse, "POST", path, question).want(400, "invalid_state").body, "consent") {
		t.Error("the refusal does not name the consent")
	}
	c.consentToMessages(patient)
	c.request(authz.Nurse, "POST", path, object{"template": "question", "text": "x"}).wantFields("text")
	c.request(authz.Nurse, "POST", path, object{"template": "free_text"}).wantFields("text")
	c.request(authz.Nurse, "POST", path, object{"template": "free_text", "text": "Your BP was 185/120"}).wantFields("text")
	c.request(authz.Nurse, "POST", path, object{"template": "free_text", "text": "ada, please call us"}).wantFields("text")
	c.request(authz.Nurse, "POST", path, object{"template": "free_text", "text": "Su azúcar fue uno ochenta"}).wantFields("text")
	c.request(authz.Nurse, "POST", path, object{"template": "hello", "channel": "fax"}).wantFields("template", "channel")
	c.request(authz.Nurse, "POST", path, object{"template": "question", "channel": "voice"}).want(400, "invalid_state")
	made := c.request(authz.Nurse, "POST", path, question).want(201).wantAt(object{"state": "queued", "language": "es", "automatic": false}).object()
	id := made["id"].(string)
	c.sendDue(worker)
	c.sendDue(worker)
	sent := twilio.sent()
	if len(sent) != 1 || sent[0].Get("To") != "+12125550123" || sent[0].Get("From") != "+12125550100" || !strings.Contains(sent[0].Get("Body"), "Tenemos una pregunta") ||
		sent[0].Get("StatusCallback") != "https://vigil.example.org/api/v1/messaging/status/?message="+id {
		t.Fatalf("sent: %v", sent)
	}
	state := func() any {
		return c.request(authz.Nurse, "GET", path, nil).results()[0]["state"]
	}
	delivered := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"delivered"}}
	c.reportState("another secret", id, delivered).want(401)
	c.reportState("", id, delivered).want(401)
	if state() != "sent" {
		t.Errorf("a forged state changed it: %v", state())
	}
	c.reportState("token", id, delivered).want(204)
	c.reportState("token", id, url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"sent"}}).want(204)
	c.reportState("token", id, delivered).want(204)
	c.reportState("token", id, url.Values{"MessageSid": {"SM9"}, "MessageStatus": {"failed"}}).want(204)
	if state() != "delivered" {
		t.Errorf("after delivery and late reports: %v", state())
	}
	c.reportState("token", "no-such-message", url.Values{"MessageSid": {"SM77"}, "MessageStatus": {"failed"}}).want(404)
	c.wantRoles("GET", path, nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.Patient)
}

// The provider's word that the phone sent STOP is a stop, and no message follows.
func TestStoryProviderReportsStop(t *testing.T) {
	c, twilio, worker := messagingClinic(t)
	patient := c.enroll(object{"phone": "+12125550123"})
	c.consentToMessages(patient)
	path := "/patients/" + patient + "/messages/"
	twilio.set(400, `{"code":21610,"message":"unsubscribed","status":400}`)
	c.request(authz.Nurse, "POST", path, object{"template": "question"}).want(201)
	c.request(authz.Nurse, "POST", path, object{"template": "battery_low"}).want(201)
	c.sendDue(worker)
	var states []string
	for _, m := range c.request(authz.Nurse, "GET", path, nil).results() {
		states = append(states, fmt.Sprint(m["state"], " ", m["reason"]))
	}
	slices.Sort(states)
	if got := strings.Join(states, ", "); got != "failed stopped, suppressed stopped" || len(twilio.sent()) != 1 {
		t.Errorf("%s after %d requests", got, len(twilio.sent()))
	}
	if c.request(authz.Nurse, "GET", "/patients/"+patient+"/", nil).object()["messaging"].(object)["stopped_at"] == nil {
		t.Error("stopped_at is not set")
	}
	c.request(authz.Nurse, "POST", path, object{"template": "question"}).want(400, "invalid_state")
}

// An answer that is not Twilio's leaves the outcome unknown: the message is shown and never sent again. A report about it decides.
func TestStoryUnknownOutcome(t *testing.T) {
	c, twilio, worker := messagingClinic(t)
	patient := c.enroll(object{"phone": "+12125550123"})
	c.consentToMessages(patient)
	path := "/patients/" + patient + "/messages/"
	twilio.set(502, "<html>Bad gateway</html>")
	id := c.request(authz.Nurse, "POST", path, object{"template": "question"}).want(201).object()["id"].(string)
	for range 3 {
		c.sendDue(worker)
		c.now = c.now.Add(10 * time.Minute)
	}
	if got := c.request(authz.Nurse, "GET", path, nil).results()[0]; got["state"] != "unknown" || len(twilio.sent()) != 1 {
		t.Errorf("%v after %d requests", got["state"], len(twilio.sent()))
	}
	c.reportState("token", id, url.Values{"MessageSid": {"SM5"}, "MessageStatus": {"delivered"}}).want(204)
	if got := c.request(authz.Nurse, "GET", path, nil).results()[0]; got["state"] != "delivered" {
		t.Errorf("after the report: %v", got["state"])
	}
	twilio.set(429, `{"code":20429,"message":"too many","status":429}`)
	c.request(authz.Nurse, "POST", path, object{"template": "question"}).want(201)
	c.sendDue(worker)
	twilio.set(201, "")
	c.now = c.now.Add(2 * time.Minute)
	c.sendDue(worker)
	if got := c.request(authz.Nurse, "GET", path, nil).results()[0]; got["state"] != "sent" {
		t.Errorf("after a limit that the provider stated: %v", got["state"])
	}
}

// Outside the hours of the patient's place a message of staff waits for the morning; a consent revoked until then stops it.
func TestStoryStaffMessageAtNight(t *testing.T) {
	c, twilio, worker := messagingClinic(t)
	honolulu := c.enroll(object{"phone": "+18085550123", "time_zone": "Pacific/Honolulu"}) // 3:45 a.m.
	revoked := c.enroll(object{"phone": "+18085550124", "time_zone": "Pacific/Honolulu", "mrn": "B-2"})
	for _, patient := range []string{honolulu, revoked} {
		c.consentToMessages(patient)
		c.request(authz.Nurse, "POST", "/patients/"+patient+"/messages/", object{"template": "question"}).want(201).wantAt(object{"due_at": "2026-01-15T18:00:00Z"})
	}
	c.sendDue(worker)
	consent := c.request(authz.Nurse, "GET", "/patients/"+revoked+"/consents/", nil).results()[0]["id"]
	c.request(authz.Nurse, "POST", fmt.Sprintf("/patients/%s/consents/%.0f/revoke/", revoked, consent), object{"reason": "Asked."}).want(200)
	if len(twilio.sent()) != 0 {
		t.Error("a message was sent at night")
	}
	c.now = time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
	c.sendDue(worker)
	if sent := twilio.sent(); len(sent) != 1 || sent[0].Get("To") != "+18085550123" {
		t.Errorf("in the morning: %v", sent)
	}
	if got := c.request(authz.Nurse, "GET", "/patients/"+revoked+"/messages/", nil).results()[0]; got["state"] != "suppressed" || got["reason"] != "no_consent" {
		t.Errorf("after the revocation: %v %v", got["state"], got["reason"])
	}
}

// Without a provider the endpoint states it, and no report is taken.
func TestMessagingIsOff(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(object{"phone": "+12125550123"})
	c.consentToMessages(patient)
	if got := c.request(authz.Nurse, "POST", "/patients/"+patient+"/messages/", object{"template": "question"}).want(400, "invalid_state"); !strings.Contains(got.body, "VIGIL_MESSAGING") {
		t.Error(got.body)
	}
	c.reportState("token", "x", url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"sent"}}).want(404)
}
