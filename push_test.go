package main

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// pushCatcher is a push service that accepts everything, and the one browser that can open it.
type pushCatcher struct {
	settings []string // with which a practice sends to it
	url      string
	receiver *vigiltest.PushReceiver
	mu       sync.Mutex
	messages [][]byte
	titles   map[string]bool
}

func newPushCatcher(t *testing.T) *pushCatcher {
	t.Helper()
	c := &pushCatcher{receiver: vigiltest.NewPushReceiver(t), titles: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		message, err := c.receiver.Open(body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		raw, _ := json.Marshal(message)
		c.mu.Lock()
		c.messages = append(c.messages, raw)
		c.titles[fmt.Sprint(message["title"])] = true
		c.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	c.url, c.settings = server.URL, []string{
		"VIGIL_VAPID_DEV_PUBLIC_KEY=" + encode(key.PublicKey().Bytes()), "VIGIL_VAPID_DEV_PRIVATE_KEY=" + encode(key.Bytes()),
		"VIGIL_VAPID_DEV_SUBJECT=mailto:test@vigil.test", "VIGIL_WEB_PUSH_DEV_ALLOWED_HOSTS=" + strings.TrimPrefix(server.URL, "http://"),
	}
	return c
}

// subscribe registers the browser for whoever holds the access token.
func (c *pushCatcher) subscribe(t *testing.T, p *practice, token string) {
	t.Helper()
	p.post(t, "/api/v1/notifications/tokens/register/", token, object{
		"token": c.receiver.Subscription(c.url + "/browser"), "type": "web_push_dev", "device_id": "browser", "platform": "web",
	}).expect(t, 201)
}

// want waits until a push of every title has arrived.
func (c *pushCatcher) want(t *testing.T, titles ...string) {
	t.Helper()
	for _, title := range titles {
		eventually(t, within, "a push titled "+title, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.titles[title]
		})
	}
}

// opened is everything that was pushed, in the clear.
func (c *pushCatcher) opened() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Join(c.messages, []byte("\n"))
}

// In a browser the worker shows what a push says, once, and nothing for a test of the subscription.
func TestPushWorkerInBrowser(t *testing.T) {
	browser := newChromium(t)
	p := newPractice(t).serve(t, "")
	var shown []struct{ Title, Body, Tag, URL string }
	browser.run(t, p, "push.mjs", object{}, &shown)
	if len(shown) != 1 || shown[0].Title != "Clinical alert" || shown[0].Tag != "vigil-7" || shown[0].URL != "/?notification=7" {
		t.Errorf("the browser shows %+v", shown)
	}
}
