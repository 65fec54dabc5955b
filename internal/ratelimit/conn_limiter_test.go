package ratelimit_test

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/ratelimit"
)

// testServer is a server behind a limiter. All of 127.0.0.0/8 is loopback, so a client may use any address of it.
type testServer struct {
	t       *testing.T
	limiter *ratelimit.ConnLimiter
	addr    string
	open    chan struct{} // closed to answer the requests at /wait
	held    chan struct{} // signaled by each such request
	errs    chan string   // errors of handlers
}

const never = time.Hour

func startServer(t *testing.T, o ratelimit.ConnOptions, wrap ...func(net.Listener) net.Listener) *testServer {
	t.Helper()
	o.Clock = time.Now
	for _, d := range []*time.Duration{&o.ReadHeaderTimeout, &o.ReadBodyTimeout, &o.IdleTimeout} {
		if *d == 0 {
			*d = never
		}
	}
	h := &testServer{t: t, limiter: ratelimit.NewConnLimiter(o), open: make(chan struct{}), held: make(chan struct{}, 100), errs: make(chan string, 100)}
	pages := http.NewServeMux()
	pages.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
	})
	pages.HandleFunc("/wait", func(http.ResponseWriter, *http.Request) {
		h.held <- struct{}{}
		<-h.open
	})
	pages.HandleFunc("/stream", func(_ http.ResponseWriter, r *http.Request) {
		served := ratelimit.AwaitClient(r.Context())
		if r.URL.RawQuery == "subscribed" {
			served()
		}
		h.held <- struct{}{}
		<-r.Context().Done()
	})
	pages.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); errors.Is(err, ratelimit.ErrBodyTimeout) {
			w.WriteHeader(http.StatusRequestTimeout)
		} else if err != nil {
			h.errs <- err.Error()
		}
	})
	pages.HandleFunc("/refuse", func(w http.ResponseWriter, r *http.Request) {
		_ = r.Body.Close() // as PocketBase does
		w.WriteHeader(http.StatusUnauthorized)
	})
	pages.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = inner.Addr().String()
	for _, w := range wrap {
		inner = w(inner)
	}
	server := &http.Server{Handler: pages}
	h.limiter.ConfigureServer(server)
	go func() { _ = server.Serve(h.limiter.Listen(inner, false)) }()
	t.Cleanup(func() { _ = server.Close() })
	return h
}

// client is one end of a connection.
type client struct {
	net.Conn
	t   *testing.T
	out *bufio.Reader
}

// dial connects from an address and sends text.
func (s *testServer) dial(address, text string) *client {
	s.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	connection, err := dialer.DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = connection.Close() })
	_, _ = io.WriteString(connection, text)
	return &client{connection, s.t, bufio.NewReader(connection)}
}

// expectStatus reads a response.
func (c *client) expectStatus(status int) *http.Response {
	c.t.Helper()
	answer, err := http.ReadResponse(c.out, nil)
	if err != nil || answer.StatusCode != status {
		c.t.Fatalf("answered %v (%v), want %d", answer, err, status)
	}
	body, _ := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(strings.NewReader(string(body)))
	return answer
}

// expectClosed waits until the server has closed the connection.
func (c *client) expectClosed() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.out); len(rest) > 0 {
		c.t.Fatalf("got %q (%v) instead of the end", rest, err)
	}
}

// waitUntil waits until the counts satisfy a condition.
func (s *testServer) waitUntil(holds func(ratelimit.ConnCounts) bool) {
	for !holds(s.limiter.Counts()) {
		runtime.Gosched()
	}
}

func (c *client) send(text string) *client {
	_, _ = io.WriteString(c.Conn, text)
	return c
}

const (
	whole  = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	half   = "POST /read HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345"
	rest   = "67890"
	head   = "GET / HTTP/1.1\r\nHost: h\r\nX-Slow: "
	wait   = "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n"
	stream = "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"
)

// TestLimitByAddress: the 257th connection of an address is refused and closed, other addresses are admitted, and a released connection makes
// room.
func TestLimitByAddress(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{MaxPerAddress: 256})
	var held []*client
	for range 256 {
		held = append(held, h.dial("127.0.0.2", half))
	}
	refused := h.dial("127.0.0.2", "")
	answer := refused.expectStatus(503)
	if answer.Header.Get("Connection") != "close" && !answer.Close || answer.Header.Get("Retry-After") == "" {
		t.Errorf("refused with %v", answer.Header)
	}
	if body, _ := io.ReadAll(answer.Body); !strings.Contains(string(body), `"code":"overloaded"`) {
		t.Errorf("refused with %s", body)
	}
	refused.expectClosed()
	h.dial("127.0.0.3", whole).expectStatus(200)
	held[0].send(rest).expectStatus(200)
	held[1].send(rest + whole).expectStatus(200)
	if counts := h.limiter.Counts(); counts.Refused != 1 || counts.Evicted != 0 {
		t.Errorf("%+v", counts)
	}
	_ = held[0].Close()
	h.waitUntil(func(c ratelimit.ConnCounts) bool { return c.Open == 256 }) // including the one of 127.0.0.3
	h.dial("127.0.0.2", whole).expectStatus(200)
}

func TestProxiesAreExempt(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{MaxPerAddress: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.8/30")}, ProxyHeaders: []string{"X-Forwarded-For"}})
	named := "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"
	for range 5 {
		answer := h.dial("127.0.0.9", named).expectStatus(200)
		if body, _ := io.ReadAll(answer.Body); string(body) != "192.0.2.7" {
			t.Errorf("the proxy's header becomes %q", body)
		}
	}
	answer := h.dial("127.0.0.2", named).expectStatus(200)
	if body, _ := io.ReadAll(answer.Body); string(body) != "" {
		t.Errorf("an untrusted header is kept: %s", body)
	}
	h.dial("127.0.0.2", whole).expectStatus(200)
	h.dial("127.0.0.2", "").expectStatus(503)
}

// TestHeadersWithoutProxies: with proxy headers but no proxy list, every peer is treated as a proxy.
func TestHeadersWithoutProxies(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{MaxPerAddress: 1, ProxyHeaders: []string{"X-Forwarded-For"}})
	for range 3 {
		h.dial("127.0.0.2", whole).expectStatus(200)
	}
}

// TestEvictionWhenFull: at the limit, the longest waiting connection of the address with the most connections is evicted, in every waiting
// state.
func TestEvictionWhenFull(t *testing.T) {
	for name, first := range map[string]string{"nothing sent": "", "half a header": head, "half a body": half, "an idle one": whole, "a stream without a subscription": stream} {
		t.Run(name, func(t *testing.T) {
			h := startServer(t, ratelimit.ConnOptions{Max: 5})
			oldest := h.dial("127.0.0.2", first)
			switch first {
			case whole:
				oldest.expectStatus(200)
				h.waitUntil(func(c ratelimit.ConnCounts) bool { return c.Waiting == 1 })
			case stream:
				<-h.held
			}
			busy := h.dial("127.0.0.2", wait)
			<-h.held
			next := h.dial("127.0.0.2", half)
			other := h.dial("127.0.0.3", half)
			h.dial("127.0.0.4", whole).expectStatus(200)
			if open := h.limiter.Counts().Open; open != 5 {
				t.Fatalf("%d are open", open)
			}
			h.dial("127.0.0.5", whole).expectStatus(200)
			oldest.expectClosed()
			h.dial("127.0.0.6", whole).expectStatus(200)
			next.expectClosed()
			other.send(rest).expectStatus(200)
			close(h.open)
			busy.expectStatus(200)
			if counts := h.limiter.Counts(); counts.Evicted != 2 || counts.Refused != 0 {
				t.Errorf("%+v", counts)
			}
		})
	}
}

// TestServedConnectionsStay: connections with a request being served are not evicted.
func TestServedConnectionsStay(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{Max: 2})
	first := h.dial("127.0.0.2", wait)
	_ = h.dial("127.0.0.2", strings.Replace(stream, "/stream", "/stream?subscribed", 1))
	<-h.held
	<-h.held
	h.dial("127.0.0.3", "").expectStatus(503)
	close(h.open)
	first.expectStatus(200)
	h.waitUntil(func(c ratelimit.ConnCounts) bool { return c.Waiting == 1 })
	h.dial("127.0.0.3", whole).expectStatus(200) // evicts the idle one
	first.expectClosed()
}

func TestSlowHeader(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{ReadHeaderTimeout: 50 * time.Millisecond})
	h.dial("127.0.0.2", head).expectClosed()
	h.dial("127.0.0.2", "").expectClosed()
}

// TestSlowBody: a body that takes too long ends the request and the connection; serving a complete request is not limited.
func TestSlowBody(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{ReadBodyTimeout: 50 * time.Millisecond})
	served := h.dial("127.0.0.3", "POST /wait HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
	<-h.held
	for range 3 {
		slow := h.dial("127.0.0.2", half)
		if answer := slow.expectStatus(408); !answer.Close {
			t.Error("the connection is kept")
		}
		slow.expectClosed()
	}
	read := h.dial("127.0.0.2", half+rest)
	read.expectStatus(200)
	h.dial("127.0.0.2", half).expectStatus(408) // a new deadline applies
	read.send(half + rest).expectStatus(200)
	close(h.open)
	served.expectStatus(200)
}

// TestRefusalsEndTheConnection: a refusal does not wait for the rest of the request and closes the connection.
func TestRefusalsEndTheConnection(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{})
	for _, test := range []struct {
		text   string
		status int
	}{
		{"POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n12345", 401},
		{"POST /refuse HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", 401},
		{"GET /busy HTTP/1.1\r\nHost: h\r\n\r\n", 429},
	} {
		client := h.dial("127.0.0.2", test.text)
		if answer := client.expectStatus(test.status); !answer.Close {
			t.Errorf("%d keeps the connection", test.status)
		}
		client.expectClosed()
	}
	kept := h.dial("127.0.0.2", "GET /refuse HTTP/1.1\r\nHost: h\r\n\r\n")
	if answer := kept.expectStatus(401); answer.Close {
		t.Error("an ordinary 401 ends the connection")
	}
	kept.send(whole).expectStatus(200)
}

// TestRequestsOverOneConnection: over HTTP/2 an address has no more concurrent requests than it may have connections.
func TestRequestsOverOneConnection(t *testing.T) {
	limiter := ratelimit.NewConnLimiter(ratelimit.ConnOptions{MaxPerAddress: 3, ReadHeaderTimeout: never, ReadBodyTimeout: never, IdleTimeout: never, Clock: time.Now})
	held, open := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("requested over %s", r.Proto)
		}
		held <- struct{}{}
		<-open
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Listener = limiter.Listen(server.Listener, true)
	limiter.ConfigureServer(server.Config)
	server.StartTLS()
	t.Cleanup(server.Close)
	answers := make(chan error, 10)
	get := func() {
		answer, err := server.Client().Get(server.URL)
		if err == nil {
			_ = answer.Body.Close()
		}
		answers <- err
	}
	for range 3 {
		go get()
	}
	for range 3 {
		<-held
	}
	go get()
	if err := <-answers; err == nil {
		t.Error("a fourth request was let in")
	}
	close(open)
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	go get()
	if err := <-answers; err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// scarce simulates one failure to accept for lack of file descriptors.
type scarce struct {
	net.Listener
}

func (s *scarce) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil && strings.HasPrefix(c.RemoteAddr().String(), "127.0.0.9:") {
		_ = c.Close()
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return c, err
}

// TestNoFilesLeft: a waiting connection is also evicted if the process has no file descriptors left.
func TestNoFilesLeft(t *testing.T) {
	h := startServer(t, ratelimit.ConnOptions{}, func(inner net.Listener) net.Listener { return &scarce{Listener: inner} })
	waiting := h.dial("127.0.0.2", half)
	h.dial("127.0.0.3", whole).expectStatus(200) // waiting less long
	h.dial("127.0.0.9", whole)
	waiting.expectClosed()
	h.dial("127.0.0.4", whole).expectStatus(200)
}
