package e2e

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// pushed is a decrypted request to the push service.
type pushed struct {
	at      time.Time
	path    string // of the endpoint, which identifies the device
	header  http.Header
	message map[string]any // nil for a test of the subscription
}

// pushCatcher is a push service that accepts everything, with the keys to decrypt it.
type pushCatcher struct {
	settings []string // settings of a practice that sends to it
	url      string
	receiver *vigiltest.PushReceiver
	clock    func() time.Time
	mu       sync.Mutex
	got      []pushed
	refusing map[string]bool // paths answered 403
}

func newPushCatcher(t *testing.T, clock func() time.Time) *pushCatcher {
	t.Helper()
	c := &pushCatcher{receiver: vigiltest.NewPushReceiver(t), clock: clock, refusing: map[string]bool{}}
	server := httptest.NewServer(c)
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

// ServeHTTP stores a push.
func (c *pushCatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	message, err := c.receiver.Open(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, pushed{c.clock(), r.URL.Path, r.Header, message})
	if c.refusing[r.URL.Path] {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// refuse makes the service answer 403 at a path, or accept it again.
func (c *pushCatcher) refuse(path string, refusing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusing[path] = refusing
}

// subscribe registers a device, at a path, for the user of the access token.
func (c *pushCatcher) subscribe(t *testing.T, p *practice, token, path string) {
	t.Helper()
	p.post(t, "/api/v1/notifications/tokens/register/", token, object{
		"token": c.receiver.Subscription(c.url + path), "type": "web_push_dev", "device_id": "browser" + path, "platform": "web",
	}).expect(t, 201)
}

// want waits until a push with each title, or the beginning of one, has arrived.
func (c *pushCatcher) want(t *testing.T, titles ...string) {
	t.Helper()
	for _, title := range titles {
		eventually(t, within, "a push titled "+title, func() bool {
			return slices.ContainsFunc(c.all(), func(p pushed) bool {
				got, _ := p.message["title"].(string)
				return strings.HasPrefix(got, title)
			})
		})
	}
}

// all returns every push so far.
func (c *pushCatcher) all() []pushed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// opened returns every push in plaintext: path, headers and content.
func (c *pushCatcher) opened() []byte {
	var out bytes.Buffer
	for _, p := range c.all() {
		raw, _ := json.Marshal(p.message)
		fmt.Fprintf(&out, "%s\n%s\n", p.path, raw)
		_ = p.header.Write(&out)
	}
	return out.Bytes()
}

// The service worker shows each push once, and nothing for a test of the subscription.
func TestPushWorkerInBrowser(t *testing.T) {
	browser := newChromium(t)
	p := newPractice(t).serve(t, "")
	var shown []struct{ Title, Body, Tag, URL string }
	browser.run(t, p, "push.mjs", object{}, &shown)
	if len(shown) != 1 || shown[0].Title != "Clinical alert" || shown[0].Tag != "vigil-7" || shown[0].URL != "/?notification=7" {
		t.Errorf("the browser shows %+v", shown)
	}
}

// Clicking a notification opens the app if no window is open, and otherwise navigates the open window to the subject of the
// push.
func TestPushTouchedInBrowser(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	p := newPractice(t).serve(t, "")
	patient := p.patient(t, object{"first_name": "Zoë", "last_name": "Touched"})
	manager := p.user(t, "clinical_manager", nil)
	p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(patient, 190, 125, time.Now())).expect(t, 201)
	var notification any
	eventually(t, within, "the manager is told", func() bool {
		notification = at(t, p.get(t, "/api/v1/notifications/?channel=alerts", manager).expect(t, 200), "results.0.id")
		return notification != nil
	})
	landed := false
	browser.run(t, p, "push_click.mjs", object{
		"email": "clinical_manager@vigil.test", "password": password, "notification": notification, "heading": "Zoë Touched",
	}, &landed)
	if !landed {
		t.Error("the click left the app")
	}
	wantAt(t, p.get(t, "/api/v1/notifications/?channel=alerts", manager).expect(t, 200), object{"results.0.read": true})
}
