package routes_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

const (
	textSecret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	anaPhone     = "+12125550123"
	strangePhone = "+12125550999"
)

// newTextingClinic is a clinic with a provider of messages.
func newTextingClinic(t testing.TB, provider messaging.Provider) *clinic {
	t.Helper()
	worker := messaging.NewWorker(messaging.WorkerOptions{Provider: provider, Log: slog.New(slog.DiscardHandler)})
	c := newIngestingClinic(t, func(e *routes.Engines) { e.Messages = worker })
	worker.Clock = func() time.Time { return c.now }
	messaging.Enable(c.app, messaging.Practice{Name: "Lakeside Heart", Hours: messaging.Hours{From: "08:00", Until: "21:00"}})
	return c
}

var (
	jsonProvider   = messaging.SignedJSON{Secret: textSecret}
	twilioProvider = messaging.Twilio{Secret: textSecret, PublicURL: "https://vigil.example.org"}
)

// text posts a text as the provider does, with an id of its own.
func (c *clinic) text(from, body string) reply {
	c.t.Helper()
	c.texts++
	return c.textAs(fmt.Sprint("msg-", c.texts), from, body)
}

func (c *clinic) textAs(id, from, body string) reply {
	c.t.Helper()
	raw, err := json.Marshal(object{"id": id, "from": from, "to": "+12125550100", "text": body})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.postText(raw, "application/json", standardHeaders(c.t, raw, c.now))
}

func standardHeaders(t testing.TB, raw []byte, at time.Time) map[string]string {
	t.Helper()
	key, err := standard.NewWebhook(textSecret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.Sign("delivery", at, raw)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"webhook-id": "delivery", "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": signature}
}

func (c *clinic) postText(raw []byte, contentType string, headers map[string]string) reply {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/api/v1/messaging/inbound/", strings.NewReader(string(raw)))
	r.Header.Set("Content-Type", contentType)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, http.MethodPost, "/api/v1/messaging/inbound/", rec.Code, rec.Header(), rec.Body.Bytes())
	return reply{c.t, "text", rec.Code, rec.Body.String()}
}

// answersSent returns the templates of the answers, in order.
func (c *clinic) answersSent() []string {
	c.t.Helper()
	return c.queryRows(c.t, `SELECT template FROM messages WHERE direction = 'out' AND template LIKE 'answer%' ORDER BY created_at, rowid`)
}

func (c *clinic) wantAnswers(want ...string) {
	c.t.Helper()
	if got := c.answersSent(); !slices.Equal(got, want) {
		c.t.Errorf("answered %q, want %q", got, want)
	}
}

// requestReading stores a sent message that requests a reading.
func (c *clinic) requestReading(patient, kind string) {
	c.t.Helper()
	c.texts++
	c.insert("messages", object{
		"id": fmt.Sprintf("request%08d", c.texts), "patient": patient, "direction": "out", "channel": "sms", "state": "sent", "template": "missed_reading", "requested_kind": kind,
		"created_at": instantText(c.now), "updated_at": instantText(c.now), "due_at": instantText(c.now),
	})
}

func instantText(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

func (c *clinic) observations(patient string) []object {
	c.t.Helper()
	return c.request(authz.Nurse, "GET", "/ingestion/observations/?patient_id="+patient, nil).results()
}

// stopped reports whether a patient's messages are stopped.
func (c *clinic) stopped(patient string) bool {
	c.t.Helper()
	return c.request(authz.Nurse, "GET", "/patients/"+patient+"/", nil).want(200).at("messaging.stopped_at") != nil
}

func TestStoryStopAndStart(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana := c.enroll(object{"phone": "(212) 555-0123"})
	c.text(anaPhone, "I cannot stop coughing").want(200)
	c.text(anaPhone, "cancel my appointment").want(200)
	if c.stopped(ana) {
		t.Error("a text about something else stopped the messages")
	}
	c.text(anaPhone, "Please STOP texting me").want(200).wantAt(object{"status": "accepted"})
	if !c.stopped(ana) {
		t.Error("the messages go on after STOP")
	}
	c.wantAnswers("answer_stop")
	c.now = c.now.Add(20 * time.Minute)
	c.text(anaPhone, "STOP").want(200)
	c.wantAnswers("answer_stop") // one confirmation
	c.text(anaPhone, "HELP").want(200)
	c.text(anaPhone, "Start").want(200)
	c.wantAnswers("answer_stop", "answer_help", "answer_start")
	if c.stopped(ana) {
		t.Error("START did not resume the messages")
	}
}

func TestStoryTwoPatientsOnePhone(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana, otto := c.enroll(object{"phone": "212-555-0123"}), c.enroll(object{"phone": "+1 212 555 0123", "first_name": "Otto"})
	c.requestReading(ana, "blood_pressure")
	c.text(anaPhone, "128/82").want(200)
	if n := len(c.observations(ana)) + len(c.observations(otto)); n != 0 {
		t.Errorf("%d readings are filed for a shared phone", n)
	}
	open := c.request(authz.Nurse, "GET", "/messaging/unmatched/", nil).results()
	if len(open) != 1 || open[0]["text"] != "128/82" || len(open[0]["patient_ids"].([]any)) != 2 {
		t.Fatalf("unmatched: %v", open)
	}
	close := fmt.Sprintf("/messaging/unmatched/%v/close/", open[0]["id"])
	c.request(authz.Nurse, "POST", close, nil).want(200)
	c.request(authz.MA, "POST", close, nil).want(200).wantAt(object{"closed_by": c.people[authz.Nurse].Email()})
	if open := c.request(authz.Nurse, "GET", "/messaging/unmatched/", nil).results(); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
	c.text(anaPhone, "I have chest pain").want(200)
	for _, patient := range []string{ana, otto} {
		if list := c.request(authz.Nurse, "GET", "/escalations/?patient_id="+patient, nil).results(); len(list) != 1 || list[0]["priority"] != "urgent" {
			t.Errorf("escalations: %v", list)
		}
	}
	c.text(anaPhone, "ALTO").want(200)
	if !c.stopped(ana) || !c.stopped(otto) {
		t.Error("STOP of a shared phone does not stop both")
	}
	c.wantAnswers("answer_emergency", "answer_stop")
}

func TestStoryUnknownNumber(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	c.enroll(object{"phone": "2125550123"})
	c.text(strangePhone, "128/82").want(200).wantAt(object{"status": "accepted"})
	c.text(strangePhone, "no puedo respirar").want(200)
	c.text(strangePhone, "STOP").want(200)
	c.wantAnswers("answer_emergency", "answer_stop")
	if text := c.queryRows(t, `SELECT language FROM messages WHERE template = 'answer_emergency'`); !slices.Equal(text, []string{"es"}) {
		t.Errorf("answered in %q", text)
	}
	if severity := c.queryRows(t, `SELECT severity FROM announcements WHERE kind = 'text_unmatched' ORDER BY created_at, rowid`); !slices.Equal(severity, []string{"info", "critical"}) {
		t.Errorf("announced %q", severity)
	}
}

func TestStoryReadingByText(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana := c.enroll(object{"phone": anaPhone})
	c.text(anaPhone, "128/82").want(200)
	if list := c.observations(ana); len(list) != 0 {
		t.Fatalf("a reading that was not asked for is filed: %v", list)
	}
	c.requestReading(ana, "blood_pressure")
	c.textAs("same", anaPhone, "128/82 pulse 70").want(200)
	c.now = c.now.Add(time.Minute)
	c.textAs("same", anaPhone, "128/82 pulse 70").want(200).wantAt(object{"status": "duplicate"})
	list := c.observations(ana)
	if len(list) != 1 || list[0]["origin"] != "patient" || list[0]["systolic"] != 128.0 || list[0]["pulse"] != 70.0 {
		t.Fatalf("filed: %v", list)
	}
	c.text(anaPhone, "300/20").want(200)
	c.wantAnswers("answer_again")
	if alerts := c.request(authz.Nurse, "GET", "/alerts/?patient_id="+ana, nil).results(); len(alerts) != 0 {
		t.Errorf("an implausible value raised %v", alerts)
	}
	c.now = c.now.Add(time.Minute)
	c.text(anaPhone, "192/124").want(200)
	if list := c.request(authz.Nurse, "GET", "/escalations/?patient_id="+ana, nil).results(); len(list) != 1 || list[0]["priority"] != "stat" {
		t.Errorf("escalations of a critical value: %v", list)
	}
	if held := c.queryRows(t, `SELECT status FROM gateway_events WHERE implausible = TRUE`); !slices.Equal(held, []string{"discarded"}) {
		t.Errorf("the mistyped value is %q", held)
	}
	c.now = c.now.Add(25 * time.Hour)
	c.text(anaPhone, "126/80").want(200)
	if list := c.observations(ana); len(list) != 2 {
		t.Errorf("a request of yesterday is still open: %v", list)
	}
}

// A text that is no certain reading, with a dangerous value in it, is escalated; it raises no alert of a reading.
func TestStoryDangerInAText(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana := c.enroll(object{"phone": anaPhone})
	c.text(anaPhone, "188/121 at 7:30, is that bad?").want(200)
	list := c.request(authz.Nurse, "GET", "/escalations/?patient_id="+ana, nil).results()
	if len(list) != 1 || list[0]["priority"] != "urgent" || !strings.Contains(fmt.Sprint(list[0]["reason"]), "188/121") {
		t.Fatalf("escalations: %v", list)
	}
	c.text(anaPhone, "I want to die").want(200)
	list = c.request(authz.Nurse, "GET", "/escalations/?patient_id="+ana, nil).results()
	if len(list) != 1 || !strings.Contains(fmt.Sprint(list[0]["history"]), "want to die") {
		t.Errorf("the second text did not join: %v", list)
	}
	c.wantAnswers("answer_self_harm")
}

func TestStoryTextsOfArchivedPatients(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana := c.enroll(object{"phone": anaPhone})
	c.requestReading(ana, "blood_pressure")
	c.request(authz.Admin, "POST", "/patients/"+ana+"/archive/", object{"reason": "moved away"}).want(200)
	c.text(anaPhone, "128/82").want(200)
	c.text(anaPhone, "chest pain").want(200)
	c.text(anaPhone, "STOP").want(200)
	c.wantAnswers("answer_emergency", "answer_stop")
	if n := c.queryRows(t, `SELECT COUNT(*) FROM observations`); n[0] != "0" {
		t.Errorf("%s readings of an archived patient", n[0])
	}
	if n := c.queryRows(t, `SELECT COUNT(*) FROM escalations`); n[0] != "0" {
		t.Errorf("%s escalations of an archived patient", n[0])
	}
	if kinds := c.queryRows(t, `SELECT severity FROM announcements WHERE kind = 'text_unmatched' ORDER BY created_at, rowid`); !slices.Equal(kinds, []string{"info", "critical"}) {
		t.Errorf("announced %q", kinds)
	}
}

func TestForgedTexts(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	raw := []byte(`{"id":"1","from":"` + anaPhone + `","text":"STOP"}`)
	c.postText(raw, "application/json", nil).want(401, "invalid_signature")
	forged := standardHeaders(t, raw, c.now)
	forged["webhook-signature"] = "v1,AAAA"
	c.postText(raw, "application/json", forged).want(401, "invalid_signature")
	c.postText([]byte(strings.Replace(string(raw), "STOP", "HELP", 1)), "application/json", standardHeaders(t, raw, c.now)).want(401, "invalid_signature")
	c.postText(raw, "application/json", standardHeaders(t, raw, c.now.Add(-6*time.Minute))).want(401, "invalid_signature")
	if n := c.queryRows(t, `SELECT COUNT(*) FROM messages`); n[0] != "0" {
		t.Errorf("%s forged texts are stored", n[0])
	}
	for body, field := range map[string]string{
		`{"from":"+12125550123","text":"x"}`: "id", `{"id":"1","text":"x"}`: "from", `{"id":"1","from":"+12125550123"}`: "text",
		`{"id":"1","from":"+12125550123","text":"` + strings.Repeat("x", 4001) + `"}`: "text", `{"id":"1","from":"+12125550123","text":5}`: "text",
	} {
		c.postText([]byte(body), "application/json", standardHeaders(t, []byte(body), c.now)).wantFields(field)
	}
	c.text(anaPhone, "").want(200)
	c.text(anaPhone, strings.Repeat("😀", 1600)).want(200)
	c.text(anaPhone, "\u202eSTOP\u0000").want(200)
	without := newIngestingClinic(t)
	without.t = t
	without.postText(raw, "application/json", standardHeaders(t, raw, c.now)).want(404)
}

// Twilio's form is verified by its own rule, and what Twilio has answered is not answered again.
func TestStoryTwilioTexts(t *testing.T) {
	c := newTextingClinic(t, twilioProvider)
	ana := c.enroll(object{"phone": anaPhone})
	post := func(form url.Values, secret string) reply {
		t.Helper()
		return c.postText([]byte(form.Encode()), "application/x-www-form-urlencoded", map[string]string{
			"X-Twilio-Signature": base64.StdEncoding.EncodeToString(messaging.TwilioSignature(secret, "https://vigil.example.org/api/v1/messaging/inbound/", form)),
		})
	}
	stop := url.Values{"MessageSid": {"SM1"}, "From": {anaPhone}, "To": {"+12125550100"}, "Body": {"Stop"}, "OptOutType": {"STOP"}}
	post(stop, "another").want(401, "invalid_signature")
	if c.stopped(ana) {
		t.Fatal("a forged form stopped the messages")
	}
	if answer := post(stop, textSecret).want(200); !strings.Contains(answer.body, "<Response></Response>") {
		t.Errorf("answered %s", answer.body)
	}
	if !c.stopped(ana) {
		t.Error("the state does not follow Twilio's")
	}
	c.wantAnswers()
	post(url.Values{"MessageSid": {"SM2"}, "From": {anaPhone}, "Body": {"start"}, "OptOutType": {"START"}}, textSecret).want(200)
	if c.stopped(ana) {
		t.Error("the state does not follow Twilio's")
	}
	post(url.Values{"MessageSid": {"SM3"}, "From": {anaPhone}, "Body": {""}, "NumMedia": {"1"}}, textSecret).want(200)
	post(stop, textSecret).want(200) // a replay
	if c.stopped(ana) {
		t.Error("a replay stopped the messages again")
	}
	post(url.Values{"From": {anaPhone}, "Body": {"x"}}, textSecret).wantFields("MessageSid")
	c.wantAnswers()
}

// An answer is sent to the phone that texted, regardless of consent, stop and hours; the confirmation of a stop only within five minutes.
func TestStoryAnswersAreSent(t *testing.T) {
	c, twilio, worker := messagingClinic(t)
	worker.Provider = answering{worker.Provider.(messaging.Twilio)}
	c.now = time.Date(2026, 3, 4, 4, 30, 0, 0, time.UTC) // 23:30 in New York
	ana := c.enroll(object{"phone": "(212) 555-0123"})
	c.text(anaPhone, "STOP").want(200)
	c.text(strangePhone, "HELP").want(200)
	c.text("28849", "HELP").want(200)
	if _, err := worker.SendDue(t.Context(), c.app); err != nil {
		t.Fatal(err)
	}
	sent := twilio.sent()
	if len(sent) != 2 || sent[0].Get("To") != anaPhone || !strings.Contains(sent[0].Get("Body"), "no more messages") || sent[1].Get("To") != strangePhone {
		t.Fatalf("sent %v", sent)
	}
	if list := c.request(authz.Nurse, "GET", "/patients/"+ana+"/messages/", nil).results(); len(list) != 2 || list[0]["template"] != "answer_stop" || list[0]["state"] != "sent" {
		t.Errorf("the thread: %v", list)
	}
	c.text(anaPhone, "START").want(200)
	c.now = c.now.Add(20 * time.Minute)
	c.text(anaPhone, "alto").want(200)
	c.now = c.now.Add(6 * time.Minute)
	if _, err := worker.SendDue(t.Context(), c.app); err != nil {
		t.Fatal(err)
	}
	if late := c.queryRows(t, `SELECT template || ' ' || state || ' ' || reason FROM messages WHERE state = 'suppressed' ORDER BY created_at, rowid`); !slices.Equal(late,
		[]string{"answer_help suppressed no_phone", "answer_stop suppressed outage"}) {
		t.Errorf("suppressed %q", late)
	}
	if sent = twilio.sent(); len(sent) != 3 || !strings.Contains(sent[2].Get("Body"), "again") {
		t.Errorf("sent %v", sent)
	}
}

// answering sends by Twilio's form and takes texts as signed JSON.
type answering struct{ messaging.Twilio }

func (answering) Verify(header http.Header, target string, body []byte, now time.Time) error {
	return jsonProvider.Verify(header, target, body, now)
}

func (answering) ReadText(body []byte) (messaging.Incoming, error) {
	return jsonProvider.ReadText(body)
}

func (answering) Markup(in messaging.Incoming, lang string) []byte {
	return jsonProvider.Markup(in, lang)
}

// The key to opt out of a call ends all messages, and is confirmed in the call.
func TestStoryKeyToStopDuringCall(t *testing.T) {
	c := newTextingClinic(t, twilioProvider)
	ana := c.enroll(object{"phone": anaPhone, "preferred_language": "es"})
	press := func(key string) reply {
		form := url.Values{"CallSid": {"CA1"}, "From": {"+12125550100"}, "To": {anaPhone}, "Digits": {key}}
		return c.postText([]byte(form.Encode()), "application/x-www-form-urlencoded", map[string]string{
			"X-Twilio-Signature": base64.StdEncoding.EncodeToString(messaging.TwilioSignature(textSecret, "https://vigil.example.org/api/v1/messaging/inbound/", form)),
		})
	}
	if answer := press("1").want(200); strings.Contains(answer.body, "Say") || c.stopped(ana) {
		t.Errorf("key 1 answers %s", answer.body)
	}
	if answer := press("9").want(200); !strings.Contains(answer.body, `<Say language="es-US">No recibirá más mensajes.`) || !c.stopped(ana) {
		t.Errorf("key 9 answers %s", answer.body)
	}
	press("9").want(200)
	c.wantAnswers()
}

// A person reads a text and the earlier ones of the patient; what needs no person is read already.
func TestStoryTextsAreRead(t *testing.T) {
	c := newTextingClinic(t, jsonProvider)
	ana := c.enroll(object{"phone": anaPhone})
	path := "/patients/" + ana + "/messages/"
	for _, text := range []string{"When is my visit?", "HELP", "The cuff is loose", "And it beeps"} {
		c.text(anaPhone, text).want(200)
		c.now = c.now.Add(time.Minute)
	}
	unread := func() (texts []string) {
		for _, m := range c.request(authz.Nurse, "GET", path, nil).results() {
			if m["direction"] == "in" && m["read_at"] == nil {
				texts = append(texts, fmt.Sprint(m["text"]))
			}
		}
		return texts
	}
	if got := unread(); !slices.Equal(got, []string{"And it beeps", "The cuff is loose", "When is my visit?"}) {
		t.Fatalf("unread %q", got)
	}
	list := c.request(authz.Nurse, "GET", path, nil).results()
	loose := list[slices.IndexFunc(list, func(m object) bool { return m["text"] == "The cuff is loose" })]["id"]
	read := fmt.Sprintf("%s%v/read/", path, loose)
	c.request(authz.Nurse, "POST", read, nil).want(200).wantAt(object{"read_by": c.people[authz.Nurse].Email()})
	c.request(authz.MA, "POST", read, nil).want(200).wantAt(object{"read_by": c.people[authz.Nurse].Email()})
	if got := unread(); !slices.Equal(got, []string{"And it beeps"}) {
		t.Errorf("unread %q", got)
	}
	otto := c.enroll(object{"phone": strangePhone})
	c.request(authz.Nurse, "POST", fmt.Sprintf("/patients/%s/messages/%v/read/", otto, loose), nil).want(404)
	c.request(authz.Nurse, "POST", fmt.Sprintf("/messaging/unmatched/%v/close/", loose), nil).want(404)
}

// With access restricted to care teams, a text is listed and closed by the teams of its possible senders, who see no other patients; a text of
// an unknown number by all.
func TestUnmatchedTextsOfOtherTeams(t *testing.T) {
	worker := messaging.NewWorker(messaging.WorkerOptions{Provider: jsonProvider, Log: slog.New(slog.DiscardHandler)})
	c := newIngestingClinic(t, func(e *routes.Engines) { e.Messages, e.RestrictToCareTeam = worker, true })
	worker.Clock = func() time.Time { return c.now }
	messaging.Enable(c.app, messaging.Practice{Name: "Lakeside Heart", Hours: messaging.Hours{From: "08:00", Until: "21:00"}})
	mine := c.enroll(object{"phone": "212-555-0123"})
	c.enroll(object{"phone": "212-555-0123", "first_name": "Otto"})
	for _, name := range []string{"Eve", "Kai"} {
		c.enroll(object{"phone": "212-555-0188", "first_name": name})
	}
	c.request(authz.Admin, "PUT", "/patients/"+mine+"/care-team/", object{"members": []object{{"user_id": c.people[authz.Nurse].Number()}}}).want(200)
	c.text("+12125550123", "of my team").want(200)
	c.text("+12125550188", "of another team").want(200)
	c.text("+12125550199", "of nobody").want(200)
	ids := map[string]string{}
	for _, text := range c.request(authz.Admin, "GET", "/messaging/unmatched/", nil).results() {
		ids[text["text"].(string)] = text["id"].(string)
	}
	if len(ids) != 3 {
		t.Fatalf("an administrator sees %v", ids)
	}
	for _, query := range []string{"", "?page_size=1", "?page_size=1&page=2"} {
		answer := c.request(authz.Nurse, "GET", "/messaging/unmatched/"+query, nil).want(200)
		if strings.Contains(answer.body, "another team") || answer.at("count") != 2.0 {
			t.Errorf("%s lists %s", query, answer.body)
		}
		for _, entry := range answer.at("results").([]any) {
			text := entry.(object)
			if known := text["patient_ids"].([]any); text["text"] == "of my team" && (len(known) != 1 || known[0] != mine) {
				t.Errorf("patients are %v", known)
			}
		}
	}
	closing := func(text string) reply {
		return c.request(authz.Nurse, "POST", "/messaging/unmatched/"+ids[text]+"/close/", nil)
	}
	closing("of another team").want(404, "not_found")
	if known := closing("of my team").want(200).at("patient_ids").([]any); len(known) != 1 || known[0] != mine {
		t.Errorf("closing shows the patients %v", known)
	}
	closing("of nobody").want(200)
	if left := c.request(authz.Admin, "GET", "/messaging/unmatched/", nil).results(); len(left) != 1 || left[0]["text"] != "of another team" {
		t.Errorf("still open: %v", left)
	}
	if closed := c.request(authz.Nurse, "GET", "/messaging/unmatched/?status=closed", nil).results(); len(closed) != 2 {
		t.Errorf("closed: %v", closed)
	}
}
