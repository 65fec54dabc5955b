package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/internal/messaging"
)

var textSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of at least 24 bytes"))

// textCatcher is a provider of messages that takes everything.
type textCatcher struct {
	settings []string // settings of a practice that sends to it
	mu       sync.Mutex
	got      []string // the texts
}

func newTextCatcher(t *testing.T) *textCatcher {
	t.Helper()
	c := &textCatcher{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.settings = []string{
		"VIGIL_MESSAGING=http", "VIGIL_MESSAGING_URL=" + server.URL, "VIGIL_MESSAGING_SECRET=" + textSecret, "VIGIL_MESSAGING_FROM=+15185550100",
	}
	return c
}

// ServeHTTP stores a text.
func (c *textCatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var sent struct{ Text string }
	if json.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, sent.Text)
	w.WriteHeader(http.StatusNoContent)
}

// all returns every text so far, one a line.
func (c *textCatcher) all() (lines []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sent := range c.got {
		lines = append(lines, sent+"\n"...)
	}
	return lines
}

// textFromStranger delivers a text of a number that no patient has, signed as the provider does.
func (w *week) textFromStranger(id, words string) {
	w.t.Helper()
	body := encode(w.t, object{"id": id, "from": weekMarks["stray phone"][0], "to": "+15185550100", "text": words})
	key, err := standard.NewWebhook(textSecret)
	if err != nil {
		w.t.Fatal(err)
	}
	signed, err := key.Sign(id, w.clock.Now(), []byte(body))
	if err != nil {
		w.t.Fatal(err)
	}
	w.send(w.t, http.MethodPost, "/api/v1/messaging/inbound/", "", body, standard.HeaderWebhookID, id,
		standard.HeaderWebhookTimestamp, strconv.FormatInt(w.clock.Now().Unix(), 10), standard.HeaderWebhookSignature, signed).expect(w.t, http.StatusOK)
}

// strayTexts come from a phone of nobody; the second is an emergency, which is answered.
func (w *week) strayTexts() {
	w.textFromStranger("stray-1", "Is the office open? "+weekMarks["stray text"][0])
	w.textFromStranger("stray-2", "I have chest pain. "+weekMarks["urgent text"][0])
	sent := fmt.Sprintf("SELECT COUNT(*) FROM messages WHERE template = '%s' AND state = 'sent'", messaging.AnswerEmergency)
	w.until("the emergency is answered", func() bool { return w.count(sent) == 1 })
}

// portalMessages are one of staff to a patient, and the patient's answer.
func (w *week) portalMessages() {
	path := "/api/v1/patients/" + w.bob + "/messages/"
	w.post(w.t, path, w.as(adminEmail), object{"template": "free_text", "channel": "portal", "text": weekMarks["staff message"][0]}).expect(w.t, http.StatusCreated)
	w.post(w.t, path, w.as(portal), object{"text": "Thank you. " + weekMarks["patient message"][0]}).expect(w.t, http.StatusCreated)
}

// questionnaire is assigned, and answered with the highest score.
func (w *week) questionnaire() {
	path := "/api/v1/patients/" + w.bob + "/questionnaires/"
	id := at(w.t, w.post(w.t, path, w.as(adminEmail), object{"questionnaire": "phq-2"}).expect(w.t, http.StatusCreated), "id")
	nearlyEveryDay := "LA6571-9"
	wantAt(w.t, w.post(w.t, fmt.Sprintf("%s%.0f/answers/", path, id), w.as(portal), object{"answers": []object{
		{"item": "44250-9", "value": nearlyEveryDay}, {"item": "44255-8", "value": nearlyEveryDay},
	}}).expect(w.t, http.StatusCreated), object{"score": 6.0, "result": "positive"})
}
