package webhooks_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/webhooks"
)

// dnsServer is a name server of an attacker: every name resolves to the current address.
type dnsServer struct {
	conn    net.PacketConn
	address atomic.Pointer[netip.Addr]
}

// newDNSServer makes this process use the server until the test ends.
func newDNSServer(t *testing.T) *dnsServer {
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &dnsServer{conn: conn}
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before; _ = conn.Close() })
	go n.serve()
	return n
}

// serve answers each address query with the current address. Source: RFC 1035, section 4; RFC 3596.
func (s *dnsServer) serve() {
	buffer := make([]byte, 1500)
	for {
		size, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		end := 12
		for end < size && buffer[end] != 0 {
			end += int(buffer[end]) + 1
		}
		question := buffer[12 : end+5]
		kind := binary.BigEndian.Uint16(question[len(question)-4:])
		answer := append([]byte{buffer[0], buffer[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
		at := *s.address.Load()
		if kind == 1 && at.Is4() || kind == 28 && at.Is6() {
			answer[7] = 1
			answer = append(answer, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(at.AsSlice())))
			answer = append(answer, at.AsSlice()...)
		}
		_, _ = s.conn.WriteTo(answer, from)
	}
}

// A name that was public when the webhook was created and resolves to a private address when it is dialed: no connection is made, and an open port
// looks like a closed one.
func TestHostnameResolvingToPrivateAddressIsBlocked(t *testing.T) {
	var connections atomic.Int32
	open := httptest.NewUnstartedServer(http.NotFoundHandler())
	open.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	open.StartTLS()
	t.Cleanup(open.Close)
	_, port, _ := net.SplitHostPort(open.Listener.Addr().String())
	n := newDNSServer(t)
	p := newPractice(t)
	p.engine = p.newEngine(func(o *webhooks.Options) { o.Client = egress.New(egress.Options{Timeout: 5 * time.Second}) })
	for i, at := range []string{
		"127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.5.4", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
		"fe80::1", "fd00::1", "64:ff9b::7f00:1", "::", "2002:7f00:1::",
	} {
		address := netip.MustParseAddr(at)
		n.address.Store(&address)
		for _, to := range []string{port, "1"} { // open and closed
			made, err := p.engine.Create(p.app, p.draft(fmt.Sprintf(`{"url": "https://hooks%d.example.org:%s/", "events": ["observation.created"]}`, i, to)), admin, p.clock())
			if err != nil {
				t.Fatal(err)
			}
			test, err := p.engine.Test(t.Context(), p.app, made.Webhook.Id, admin, p.clock())
			if err != nil || test.Error != "address" || test.Code != 0 {
				t.Errorf("%s: %+v, %v", at, test, err)
			}
			p.reading(at+to, 1)
			p.runOnce()
			if d := p.log(made.Webhook.Id); len(d) != 2 || d[1].Error != "address" || d[1].Status != "pending" {
				t.Errorf("%s: %+v", at, d)
			}
			if err := p.engine.Delete(p.app, made.Webhook.Id, admin, p.clock()); err != nil {
				t.Error(err)
			}
		}
	}
	if c := connections.Load(); c != 0 {
		t.Errorf("%d connections to private addresses were made", c)
	}
}

// A redirect is a failed attempt; it is not followed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	p := newPractice(t)
	inside := p.receiver(nil)
	r := p.receiver(nil)
	r.before = func(w http.ResponseWriter, q *http.Request) bool {
		http.Redirect(w, q, inside.URL, http.StatusTemporaryRedirect)
		return true
	}
	hook := p.hook(r, "observation.created")
	p.reading("p1", 1)
	p.runOnce()
	if d := p.log(hook)[0]; d.Status != "pending" || d.Code != 307 || d.Error != "status" || len(inside.all) != 0 {
		t.Errorf("%+v, and %d requests to the redirect target", d, len(inside.all))
	}
}

// Receivers that hang, answer without end or do not exist do not affect each other. The healthy one gets every event while the others hang, and the
// slow one is awaited.
func TestFailingReceiversAreIsolated(t *testing.T) {
	p := newPractice(t, func(o *webhooks.Options) { o.Timeout = 10 * time.Second })
	healthy := p.receiver(nil)
	all := make(chan struct{})
	var once sync.Once
	healthy.setAnswer(func(request) int {
		if len(healthy.accepted) == 19 {
			once.Do(func() { close(all) })
		}
		return 200
	})
	hangs, slow, endless, drips := p.receiver(nil), p.receiver(nil), p.receiver(nil), p.receiver(nil)
	hangs.before = func(_ http.ResponseWriter, q *http.Request) bool {
		_, _ = io.Copy(io.Discard, q.Body) // otherwise the server does not notice that the client disconnected
		<-q.Context().Done()
		return true
	}
	slow.before = func(http.ResponseWriter, *http.Request) bool { <-all; return false } // until the healthy one has everything
	endless.before = func(w http.ResponseWriter, _ *http.Request) bool {
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return true
			}
		}
	}
	drips.before = func(w http.ResponseWriter, q *http.Request) bool {
		_, _ = io.Copy(io.Discard, q.Body)
		_, _ = w.Write([]byte("."))
		w.(http.Flusher).Flush()
		<-q.Context().Done()
		return true
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	absent := httptest.NewServer(http.NotFoundHandler())
	absent.Close()
	t.Cleanup(func() { once.Do(func() { close(all) }) }) // unblocks the slow receiver before its server closes
	ids := map[string]string{}
	for name, r := range map[string]*receiver{"healthy": healthy, "hangs": hangs, "slow": slow, "endless": endless, "drips": drips} {
		ids[name] = p.hook(r, "observation.created")
	}
	ids["certificate"] = p.hook(&receiver{Server: secure}, "observation.created")
	ids["absent"] = p.hook(&receiver{Server: absent}, "observation.created")
	for n := range 20 {
		p.reading(fmt.Sprintf("p%d", n%4), n)
	}
	p.runOnce()
	for name, want := range map[string]string{
		"healthy": "delivered 200 ", "slow": "delivered 200 ", "endless": "delivered 200 ", "drips": "delivered 200 ", "hangs": "pending 0 timeout",
		"certificate": "pending 0 certificate", "absent": "pending 0 connection",
	} {
		d := p.log(ids[name])[0]
		if got := fmt.Sprintf("%s %d %s", d.Status, d.Code, d.Error); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, count := range map[string]int{"healthy": 20, "slow": 20, "endless": 20, "drips": 20, "hangs": 0, "absent": 0} {
		if got := p.count(ids[name], "delivered"); got != count {
			t.Errorf("%s accepted %d", name, got)
		}
	}
}

// A service that stops during a request sends the event again, under the same id.
func TestInterruptedRequestIsSentAgain(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	hook := p.hook(r, "observation.created")
	p.reading("p1", 1)
	p.reading("p1", 2)
	ctx, cancel := context.WithCancel(t.Context())
	var cut string
	r.before = func(_ http.ResponseWriter, q *http.Request) bool {
		_, _ = io.Copy(io.Discard, q.Body)
		cut = q.Header.Get("webhook-id")
		cancel()
		<-q.Context().Done()
		return true
	}
	if err := p.engine.RunOnce(ctx, p.app); err == nil {
		t.Error("a canceled round returns no error")
	}
	if d := p.log(hook)[0]; d.Attempts != 0 || d.Status != "pending" || d.ID != cut {
		t.Errorf("%+v", d)
	}
	r.before = nil
	p.engine = p.newEngine()
	p.runOnce()
	if diff := cmp.Diff([]string{"p1-1", "p1-2"}, ids(r.accepted, "")); diff != "" || r.accepted[0].ID != cut {
		t.Error(diff, r.accepted[0].ID)
	}
}

// Run delivers committed events, resumes a webhook that is disabled and enabled again, and stops with its context.
func TestRunDeliversUntilCanceled(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	came := make(chan string, 100)
	r.setAnswer(func(g request) int { came <- fmt.Sprint(g.Data["id"]); return 200 })
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { p.engine.Run(ctx, p.app) })
	hook := p.hook(r, "observation.created")
	p.reading("p1", 1)
	p.engine.Wake()
	if got := <-came; got != "p1-1" {
		t.Error(got)
	}
	p.change(hook, `{"active": false}`)
	p.reading("p1", 2)
	p.engine.Wake()
	p.change(hook, `{"active": true}`)
	p.reading("p1", 3)
	for _, want := range []string{"p1-2", "p1-3"} { // without a wake-up
		if got := <-came; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	cancel()
	run.Wait()
}

// New events apply from the next change on. Changes made while a webhook is disabled are sent when it is enabled, by the events it subscribes to
// then.
func TestChangedEventsApplyFromNextChange(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	hook := p.hook(r, "alert.raised")
	alert := func(n int) {
		p.run(fmt.Sprintf(`INSERT INTO alerts (id, patient, status, level, type) VALUES ('%015d', 'p1', 'active', 'warning', 'pulse')`, n))
	}
	p.reading("p1", 1)
	alert(1)
	p.runOnce()
	p.reading("p1", 2)
	p.runOnce()
	p.change(hook, `{"events": ["observation.created"]}`)
	alert(2)
	p.reading("p1", 3)
	p.runOnce()
	p.engine = p.newEngine() // discards the positions kept in memory
	p.runOnce()
	p.change(hook, `{"active": false}`)
	p.reading("p1", 4)
	alert(3)
	p.runOnce()
	p.change(hook, `{"active": true}`)
	p.runOnce()
	if diff := cmp.Diff([]string{"1", "p1-3", "p1-4"}, ids(r.accepted, "")); diff != "" {
		t.Error(diff)
	}
}

// A large backlog is processed in small steps, even if few changes match, and each event is sent once.
func TestLargeBacklogIsDeliveredOnce(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	hook := p.hook(r, "alert.raised")
	p.change(hook, `{"active": false}`)
	p.run(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
		INSERT INTO observations (id, patient, status, observation_type, reading_key, gateway_key) SELECT 'o' || i, 'p' || (i % 7), 'final', 'weight', 'k' || i, '' FROM n`)
	var want []string
	for n := range 30 {
		want = append(want, fmt.Sprint(n+1))
		p.run(fmt.Sprintf(`INSERT INTO alerts (id, patient, status, level, type) VALUES ('%015d', 'p%d', 'active', 'warning', 'pulse')`, n+1, n%7))
	}
	p.change(hook, `{"active": true}`)
	p.runOnce()
	p.runOnce()
	got := ids(r.accepted, "")
	slices.SortFunc(got, func(a, b string) int { return len(a)*1000 + strings.Compare(a, b) - len(b)*1000 })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var position int64
	if err := p.app.DB().NewQuery(`SELECT position FROM webhooks`).Row(&position); err != nil || position < 12000 {
		t.Errorf("the position is %d, %v", position, err)
	}
}

// Two engines on one database, which is not a supported setup, send no stored event twice.
func TestTwoEnginesSendNoDuplicates(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	hook := p.hook(r, "observation.created")
	for n := range 50 {
		p.reading("p1", n)
	}
	other := p.newEngine()
	var both sync.WaitGroup
	both.Go(func() { _ = other.RunOnce(t.Context(), p.app) })
	both.Go(func() { p.runOnce() })
	both.Wait()
	p.runOnce()
	if log := p.log(hook); len(log) != 50 {
		t.Errorf("%d deliveries", len(log))
	}
	if w := p.webhook(hook); w.LastDeliveredAt().IsZero() || p.count(hook, collections.WebhookDelivered) != 50 {
		t.Errorf("%d were accepted", p.count(hook, collections.WebhookDelivered))
	}
}

// A validation error names its field.
func TestReadNewReportsFields(t *testing.T) {
	p := newPractice(t)
	checks := validate.NewChecks()
	p.engine.ReadNew(webhooks.Body{}, checks)
	if len(checks.Fields) != 2 || checks.Fields["url"] == nil || checks.Fields["events"] == nil {
		t.Errorf("%v", checks.Fields)
	}
}

// A webhook that was disabled for longer than changes are kept resumes with the oldest kept change, and administrators are notified.
func TestDisabledBeyondRetention(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	hook := p.hook(r, "observation.created")
	p.change(hook, `{"active": false}`)
	p.reading("p1", 1)
	p.change(hook, `{"active": true}`)
	if notices := p.notices(); len(notices) != 0 {
		t.Errorf("notices %q", notices)
	}
	p.change(hook, `{"active": false}`)
	p.reading("p1", 2)
	p.reading("p1", 3)
	p.run(`DELETE FROM changes WHERE record != 'p1-3'`)
	p.change(hook, `{"active": true}`)
	p.runOnce()
	if diff := cmp.Diff([]string{"p1-3"}, ids(r.accepted, "")); diff != "" {
		t.Error(diff)
	}
	if notices := p.notices(); len(notices) != 1 || !strings.Contains(notices[0], "have been removed") {
		t.Errorf("notices %q", notices)
	}
}

// While readings wait to be stored, receivers get fewer requests, but not none.
func TestDeliveriesYieldToReadings(t *testing.T) {
	var busy atomic.Bool
	p := newPractice(t, func(o *webhooks.Options) { o.ReadingsPending = busy.Load })
	r := p.receiver(nil)
	p.hook(r, "observation.created")
	busy.Store(true)
	for n := range 20 {
		p.reading(fmt.Sprint("p", n), 1)
	}
	p.runOnce()
	if len(r.accepted) != 8 {
		t.Errorf("%d requests at once", len(r.accepted))
	}
	p.advance(2 * time.Second)
	if len(r.accepted) != 16 {
		t.Errorf("%d requests", len(r.accepted))
	}
	busy.Store(false)
	p.runOnce()
	if len(r.accepted) != 20 {
		t.Errorf("%d requests when no reading waits", len(r.accepted))
	}
}
