package ingress_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/events/envelope"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vigiltest/natsserver"
	"github.com/vigilhealth/vigil/routes/ingress"
)

var (
	directoryKey = []byte("the company's directory key")
	start        = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
)

const (
	secret       = "the company's webhook secret"
	tenoviSecret = "the company's Tenovi secret"
	streamName   = "VIGIL_EVENTS"
)

// company is an ingress with the practices elm and oak: elm's device moved to oak at noon.
type company struct {
	t          *testing.T
	dir        string
	servers    *natsserver.Servers
	stream     *events.Stream
	directory  *directory.Directory
	handler    http.Handler
	identities map[string]*age.X25519Identity // "" is the company's
}

func newCompany(t *testing.T, maxBytes int64) *company {
	t.Helper()
	c := &company{t: t, dir: t.TempDir(), identities: map[string]*age.X25519Identity{}}
	for _, name := range []string{"", "elm", "oak"} {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		c.identities[name] = identity
	}
	var err error
	if c.servers, err = natsserver.Start(natsserver.Options{Dir: c.dir, Size: 1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.servers.Stop)
	log := slog.New(slog.DiscardHandler)
	c.stream, err = events.Connect(events.Options{URLs: c.servers.URLs(), Stream: streamName, Replicas: 1, Retention: time.Hour, MaxBytes: maxBytes, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stream.Close)
	if err := c.stream.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.directory = directory.New(c.stream.JetStream(), log)
	c.handler = ingress.Handler(ingress.Options{
		Adapters: gateway.NewAdapters(config.Gateway{
			WebhookSecret: secret, TenoviSecret: tenoviSecret, TimestampTolerance: time.Hour,
		}, 5*time.Minute),
		Directory: c.directory, Stream: c.stream, DirectoryKey: directoryKey, Organization: c.identities[""].Recipient().String(),
		Address: ingress.ClientAddress(nil, nil), Metrics: ingress.NewMetrics(prometheus.NewRegistry()), Log: log, Clock: func() time.Time { return start },
	})
	return c
}

// load publishes the claims and waits for the directory.
func (c *company) load() {
	c.t.Helper()
	js := c.stream.JetStream()
	if err := directory.Create(c.t.Context(), js, 1); err != nil {
		c.t.Fatal(err)
	}
	noon := start.Add(-2 * time.Hour)
	for practice, claims := range map[string]map[string][]directory.Interval{
		"elm": {"bp-elm": {{From: noon.Add(-time.Hour)}}, "bp-moved": {{From: noon.Add(-240 * time.Hour), To: noon}}, "bp-twice": {{From: noon}}},
		"oak": {"bp-oak": {{From: noon}}, "bp-moved": {{From: noon}}, "bp-twice": {{From: noon}}},
	} {
		own := map[directory.ID][]directory.Interval{}
		for device, intervals := range claims {
			own[directory.NewID(directoryKey, directory.Device, device)] = intervals
		}
		if err := directory.NewPublisher(js, practice).Publish(c.t.Context(), c.identities[practice].Recipient().String(), own); err != nil {
			c.t.Fatal(err)
		}
	}
	go c.directory.Run(c.t.Context())
	for {
		changed := c.directory.Changed()
		if c.directory.Loaded() {
			return
		}
		<-changed
	}
}

// send posts a signed event of the contract's gateway.
func (c *company) send(body string) *httptest.ResponseRecorder {
	return c.post("/api/v1/gateway/webhook/", body, map[string]string{
		gateway.SignatureHeader: gateway.Sign(secret, []byte(body)), gateway.TimestampHeader: strconv.FormatInt(start.Unix(), 10),
	})
}

func (c *company) post(path, body string, header map[string]string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for name, value := range header {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	c.handler.ServeHTTP(recorder, request)
	return recorder
}

// pressure returns an event of a device.
func pressure(device string, measured time.Time, systolic int) string {
	return fmt.Sprintf(`{"event_type":"measurement.created","device_id":%q,"patient_id":"gp-1","timestamp":%q,"measurement_type":"blood_pressure",`+
		`"values":{"systolic":%d,"diastolic":80,"pulse":70},"unit":"mmHg"}`, device, measured.Format(time.RFC3339), systolic)
}

// bodies returns the bodies that the stream has for an owner, opened with its key: a practice, or "" for none.
func (c *company) bodies(owner string) (bodies []string) {
	c.t.Helper()
	subject := events.Subject(owner)
	if owner == "" {
		subject = events.Unassigned
	}
	stream, err := c.stream.JetStream().Stream(c.t.Context(), streamName)
	if err != nil {
		c.t.Fatal(err)
	}
	for sequence := uint64(1); ; {
		message, err := stream.GetMsg(c.t.Context(), sequence, jetstream.WithGetMsgSubject(subject))
		if err != nil {
			return bodies
		}
		opened, err := envelope.Open(message.Data, c.identities[owner])
		if err != nil {
			c.t.Fatal(err)
		}
		bodies, sequence = append(bodies, string(opened.Body)), message.Sequence+1
	}
}

func TestEventsGoToTheOwnerOfTheDevice(t *testing.T) {
	c := newCompany(t, 0)
	c.load()
	for _, test := range []struct {
		name, device string
		measured     time.Time
		owner        string
	}{
		{"one practice", "bp-elm", start.Add(-time.Minute), "elm"},
		{"another practice", "bp-oak", start.Add(-time.Minute), "oak"},
		{"the backlog of a moved device", "bp-moved", start.Add(-3 * time.Hour), "elm"},
		{"a moved device", "bp-moved", start.Add(-time.Hour), "oak"},
		{"overlapping claims", "bp-twice", start.Add(-time.Minute), ""},
		{"unknown device", "bp-unknown", start.Add(-time.Minute), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := pressure(test.device, test.measured, 195)
			if got := c.send(body); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"status":"accepted"`) {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			for owner := range c.identities {
				if isThere := strings.Contains(strings.Join(c.bodies(owner), "\n"), body); isThere != (owner == test.owner) {
					t.Errorf("in the subject of %q: %v", owner, isThere)
				}
			}
		})
	}
}

func TestRepeatsAndOtherValues(t *testing.T) {
	c := newCompany(t, 0)
	c.load()
	measured := start.Add(-time.Minute)
	for _, systolic := range []int{121, 121, 122, 121} {
		if got := c.send(pressure("bp-elm", measured, systolic)); got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	if got := c.bodies("elm"); len(got) != 2 {
		t.Errorf("%d events in the stream, want the reading and the one that conflicts with it", len(got))
	}
}

func TestDeliveryForTwoPractices(t *testing.T) {
	c := newCompany(t, 0)
	c.load()
	part := func(device, value string) string {
		return fmt.Sprintf(`{"metric":"weight","hwi_device_id":%q,"value_1":%q,"timestamp":%q}`, device, value, start.Add(-time.Minute).Format(time.RFC3339))
	}
	body := "[" + part("bp-elm", "180") + "," + part("bp-oak", "150") + "," + part("bp-oak", "no number") + "]"
	got := c.post("/api/v1/gateway/tenovi/", body, map[string]string{"Authorization": tenoviSecret})
	if got.Code != http.StatusOK || strings.Count(got.Body.String(), `"status":"accepted"`) != 2 || strings.Count(got.Body.String(), `"status":"rejected"`) != 1 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	if elm, oak := c.bodies("elm"), c.bodies("oak"); len(elm) != 1 || len(oak) != 2 || !strings.Contains(elm[0], "180") {
		t.Errorf("elm has %v, oak has %v", elm, oak)
	}
	if got := c.post("/api/v1/gateway/tenovi/", part("bp-elm", "no number"), map[string]string{"Authorization": tenoviSecret}); got.Code != http.StatusBadRequest {
		t.Errorf("a delivery that cannot be read: %d %s", got.Code, got.Body)
	}
	if elm := c.bodies("elm"); len(elm) != 2 {
		t.Errorf("the rejected event is not kept: %v", elm)
	}
}

func TestRefusedRequests(t *testing.T) {
	c := newCompany(t, 0)
	body := pressure("bp-elm", start.Add(-time.Minute), 121)
	probe := func() int {
		recorder := httptest.NewRecorder()
		c.handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return recorder.Code
	}
	if got := c.send(body); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" || !strings.Contains(got.Body.String(), "directory_not_loaded") {
		t.Errorf("before the directory is loaded: %d %s", got.Code, got.Body)
	}
	if got := probe(); got != http.StatusServiceUnavailable {
		t.Errorf("readyz before the directory is loaded: %d", got)
	}
	c.load()
	if got := probe(); got != http.StatusOK {
		t.Errorf("readyz: %d", got)
	}
	if got := c.post("/api/v1/gateway/webhook/", body, map[string]string{gateway.SignatureHeader: "sha256=00"}); got.Code != http.StatusUnauthorized {
		t.Errorf("a wrong signature: %d %s", got.Code, got.Body)
	}
	if got := c.post("/api/v1/gateway/telli/", body, nil); got.Code != http.StatusServiceUnavailable {
		t.Errorf("a vendor without a secret: %d %s", got.Code, got.Body)
	}
	if got := c.send(body + strings.Repeat(" ", 64<<10)); got.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d", got.Code)
	}
	if got := c.post("/api/v1/patients/", body, nil); got.Code != http.StatusNotFound {
		t.Errorf("another path: %d", got.Code)
	}
	if got := c.bodies("elm"); len(got) != 0 {
		t.Errorf("refused requests published %v", got)
	}
	c.servers.StopOne(0)
	if got := c.send(body); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("without servers: %d %s", got.Code, got.Body)
	}
	if err := c.servers.Run(0); err != nil {
		t.Fatal(err)
	}
	got := c.send(body)
	for end := time.Now().Add(30 * time.Second); got.Code != http.StatusOK && time.Now().Before(end); got = c.send(body) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	if got.Code != http.StatusOK || len(c.bodies("elm")) != 1 {
		t.Errorf("after the servers are back: %d %s", got.Code, got.Body)
	}
}

func TestFullStreamIs503(t *testing.T) {
	c := newCompany(t, 5000)
	c.load()
	code, accepted := http.StatusOK, 0
	for n := 0; n < 50 && code == http.StatusOK; n++ {
		got := c.send(pressure("bp-elm", start.Add(-time.Duration(n)*time.Minute), 121))
		if code = got.Code; code == http.StatusOK {
			accepted++
		} else if code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "events_full") || got.Header().Get("Retry-After") == "" {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	if kept := len(c.bodies("elm")); code == http.StatusOK || accepted == 0 || kept != accepted {
		t.Errorf("%d accepted, %d kept, then %d", accepted, kept, code)
	}
}

// No server's file holds an event's content, a device's id or a patient's id.
func TestNoContentInTheFilesOfTheStream(t *testing.T) {
	c := newCompany(t, 0)
	c.load()
	for _, device := range []string{"bp-elm", "bp-moved", "bp-unknown"} {
		if got := c.send(strings.Replace(pressure(device, start.Add(-time.Minute), 195), `"gp-1"`, `"gp-marker-77"`, 1)); got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	c.stream.Close()
	c.servers.Stop()
	files := 0
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // only read
		content, err := io.ReadAll(f)
		files++
		for _, marker := range []string{"gp-marker-77", "bp-elm", "bp-moved", "bp-unknown", "systolic", "blood_pressure", `:195`} {
			if bytes.Contains(content, []byte(marker)) {
				t.Errorf("%s holds %q", filepath.Base(path), marker)
			}
		}
		return err
	})
	if err != nil || files < 3 {
		t.Fatalf("%d files, %v", files, err)
	}
}

var _ ingress.Publisher = (*events.Stream)(nil)

// A cancelled request is no acknowledgement.
func TestPublishWithoutTime(t *testing.T) {
	c := newCompany(t, 0)
	c.load()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := pressure("bp-elm", start.Add(-time.Minute), 121)
	request := httptest.NewRequest(http.MethodPost, "/api/v1/gateway/webhook/", strings.NewReader(body)).WithContext(ctx)
	request.Header.Set(gateway.SignatureHeader, gateway.Sign(secret, []byte(body)))
	request.Header.Set(gateway.TimestampHeader, strconv.FormatInt(start.Unix(), 10))
	recorder := httptest.NewRecorder()
	c.handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", recorder.Code, recorder.Body)
	}
}
