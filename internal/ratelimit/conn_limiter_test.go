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

// house is a server behind a gate. All of 127.0.0.0/8 is this machine: a client may come from any address of it.
type house struct {
	t    *testing.T
	gate *ratelimit.ConnLimiter
	addr string
	open chan struct{} // closed to answer the requests that wait at /wait
	held chan struct{} // told of each such request
	said chan string   // what handlers report
}

const never = time.Hour

func build(t *testing.T, o ratelimit.ConnOptions, wrap ...func(net.Listener) net.Listener) *house {
	t.Helper()
	o.Clock = time.Now
	for _, d := range []*time.Duration{&o.ReadHeaderTimeout, &o.ReadBodyTimeout, &o.IdleTimeout} {
		if *d == 0 {
			*d = never
		}
	}
	h := &house{t: t, gate: ratelimit.NewConnLimiter(o), open: make(chan struct{}), held: make(chan struct{}, 100), said: make(chan string, 100)}
	pages := http.NewServeMux()
	pages.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
	})
	pages.HandleFunc("/wait", func(http.ResponseWriter, *http.Request) {
		h.held <- struct{}{}
		<-h.open
	})
	pages.HandleFunc("/stream", func(_ http.ResponseWriter, r *http.Request) {
		served := ratelimit.Await(r.Context())
		if r.URL.RawQuery == "subscribed" {
			served()
		}
		h.held <- struct{}{}
		<-r.Context().Done()
	})
	pages.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); errors.Is(err, ratelimit.ErrSlow) {
			w.WriteHeader(http.StatusRequestTimeout)
		} else if err != nil {
			h.said <- err.Error()
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
	h.gate.Secure(server)
	go func() { _ = server.Serve(h.gate.Listen(inner, false)) }()
	t.Cleanup(func() { _ = server.Close() })
	return h
}

// client is one end of a connection.
type client struct {
	net.Conn
	t   *testing.T
	out *bufio.Reader
}

// dial comes from an address and says something.
func (h *house) dial(address, say string) *client {
	h.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	connection, err := dialer.DialContext(h.t.Context(), "tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = connection.Close() })
	_, _ = io.WriteString(connection, say)
	return &client{connection, h.t, bufio.NewReader(connection)}
}

// hears reads an answer.
func (c *client) hears(status int) *http.Response {
	c.t.Helper()
	answer, err := http.ReadResponse(c.out, nil)
	if err != nil || answer.StatusCode != status {
		c.t.Fatalf("answered %v (%v), want %d", answer, err, status)
	}
	body, _ := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(strings.NewReader(string(body)))
	return answer
}

// isCut waits until the other side has closed the connection.
func (c *client) isCut() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.out); len(rest) > 0 {
		c.t.Fatalf("hears %q (%v) instead of the end", rest, err)
	}
}

// until waits for what another goroutine of the server is about to do.
func (h *house) until(holds func(ratelimit.ConnCounts) bool) {
	for !holds(h.gate.Counts()) {
		runtime.Gosched()
	}
}

func (c *client) says(text string) *client {
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

// The default: the 257th connection of an address is told so and closed, others come in, and a place that was given back is taken again.
func TestLimitByAddress(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{MaxPerAddress: 256})
	var held []*client
	for range 256 {
		held = append(held, h.dial("127.0.0.2", half))
	}
	refused := h.dial("127.0.0.2", "")
	answer := refused.hears(503)
	if answer.Header.Get("Connection") != "close" && !answer.Close || answer.Header.Get("Retry-After") == "" {
		t.Errorf("refused with %v", answer.Header)
	}
	if body, _ := io.ReadAll(answer.Body); !strings.Contains(string(body), `"code":"overloaded"`) {
		t.Errorf("refused with %s", body)
	}
	refused.isCut()
	h.dial("127.0.0.3", whole).hears(200)
	held[0].says(rest).hears(200)
	held[1].says(rest + whole).hears(200)
	if counts := h.gate.Counts(); counts.Refused != 1 || counts.Cut != 0 {
		t.Errorf("%+v", counts)
	}
	_ = held[0].Close()
	h.until(func(c ratelimit.ConnCounts) bool { return c.Open == 256 }) // with the one of .3
	h.dial("127.0.0.2", whole).hears(200)
}

func TestProxiesAreExempt(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{MaxPerAddress: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.8/30")}, ProxyHeaders: []string{"X-Forwarded-For"}})
	named := "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"
	for range 5 {
		answer := h.dial("127.0.0.9", named).hears(200)
		if body, _ := io.ReadAll(answer.Body); string(body) != "192.0.2.7" {
			t.Errorf("the proxy's word becomes %q", body)
		}
	}
	answer := h.dial("127.0.0.2", named).hears(200)
	if body, _ := io.ReadAll(answer.Body); string(body) != "" {
		t.Errorf("a stranger is believed: %s", body)
	}
	h.dial("127.0.0.2", whole).hears(200)
	h.dial("127.0.0.2", "").hears(503)
}

// Headers without proxies: whoever sends them is taken for the proxy.
func TestNobodyNamedTheProxies(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{MaxPerAddress: 1, ProxyHeaders: []string{"X-Forwarded-For"}})
	for range 3 {
		h.dial("127.0.0.2", whole).hears(200)
	}
}

// When all places are taken the one that has waited longest gives way, of the address that holds the most, whatever it waits for.
func TestFullGivesWay(t *testing.T) {
	for name, first := range map[string]string{"nothing said": "", "half a header": head, "half a body": half, "an idle one": whole, "a stream without a subscription": stream} {
		t.Run(name, func(t *testing.T) {
			h := build(t, ratelimit.ConnOptions{Max: 5})
			gives := h.dial("127.0.0.2", first)
			switch first {
			case whole:
				gives.hears(200)
				h.until(func(c ratelimit.ConnCounts) bool { return c.Waiting == 1 })
			case stream:
				<-h.held
			}
			busy := h.dial("127.0.0.2", wait)
			<-h.held
			next := h.dial("127.0.0.2", half)
			other := h.dial("127.0.0.3", half)
			h.dial("127.0.0.4", whole).hears(200)
			if open := h.gate.Counts().Open; open != 5 {
				t.Fatalf("%d are open", open)
			}
			h.dial("127.0.0.5", whole).hears(200)
			gives.isCut()
			h.dial("127.0.0.6", whole).hears(200)
			next.isCut()
			other.says(rest).hears(200)
			close(h.open)
			busy.hears(200)
			if counts := h.gate.Counts(); counts.Cut != 2 || counts.Refused != 0 {
				t.Errorf("%+v", counts)
			}
		})
	}
}

// What is being served gives way to nobody.
func TestFullOfWork(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{Max: 2})
	first := h.dial("127.0.0.2", wait)
	_ = h.dial("127.0.0.2", strings.Replace(stream, "/stream", "/stream?subscribed", 1))
	<-h.held
	<-h.held
	h.dial("127.0.0.3", "").hears(503)
	close(h.open)
	first.hears(200)
	h.until(func(c ratelimit.ConnCounts) bool { return c.Waiting == 1 })
	h.dial("127.0.0.3", whole).hears(200) // the idle one gave way
	first.isCut()
}

func TestSlowHeader(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{ReadHeaderTimeout: 50 * time.Millisecond})
	h.dial("127.0.0.2", head).isCut()
	h.dial("127.0.0.2", "").isCut()
}

// A body that takes too long ends the request and the connection; a request that was complete in time may take as long as it likes.
func TestSlowBody(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{ReadBodyTimeout: 50 * time.Millisecond})
	served := h.dial("127.0.0.3", "POST /wait HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
	<-h.held
	for range 3 {
		slow := h.dial("127.0.0.2", half)
		if answer := slow.hears(408); !answer.Close {
			t.Error("the connection is kept")
		}
		slow.isCut()
	}
	read := h.dial("127.0.0.2", half+rest)
	read.hears(200)
	h.dial("127.0.0.2", half).hears(408) // longer than the first had
	read.says(half + rest).hears(200)
	close(h.open)
	served.hears(200)
}

// A refusal does not wait for the rest of the request, and ends the connection.
func TestRefusalsEndTheConnection(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{})
	for _, test := range []struct {
		say    string
		status int
	}{
		{"POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n12345", 401},
		{"POST /refuse HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", 401},
		{"GET /busy HTTP/1.1\r\nHost: h\r\n\r\n", 429},
	} {
		client := h.dial("127.0.0.2", test.say)
		if answer := client.hears(test.status); !answer.Close {
			t.Errorf("%d keeps the connection", test.status)
		}
		client.isCut()
	}
	kept := h.dial("127.0.0.2", "GET /refuse HTTP/1.1\r\nHost: h\r\n\r\n")
	if answer := kept.hears(401); answer.Close {
		t.Error("an ordinary 401 ends the connection")
	}
	kept.says(whole).hears(200)
}

// Over HTTP/2 an address has no more requests under way than it may have connections.
func TestRequestsOverOneConnection(t *testing.T) {
	gate := ratelimit.NewConnLimiter(ratelimit.ConnOptions{MaxPerAddress: 3, ReadHeaderTimeout: never, ReadBodyTimeout: never, IdleTimeout: never, Clock: time.Now})
	held, open := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("asked by %s", r.Proto)
		}
		held <- struct{}{}
		<-open
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Listener = gate.Listen(server.Listener, true)
	gate.Secure(server.Config)
	server.StartTLS()
	t.Cleanup(server.Close)
	answers := make(chan error, 10)
	ask := func() {
		answer, err := server.Client().Get(server.URL)
		if err == nil {
			_ = answer.Body.Close()
		}
		answers <- err
	}
	for range 3 {
		go ask()
	}
	for range 3 {
		<-held
	}
	go ask()
	if err := <-answers; err == nil {
		t.Error("a fourth request was let in")
	}
	close(open)
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	go ask()
	if err := <-answers; err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// scarce is a listener of a process that has no file left, once.
type scarce struct {
	net.Listener
}

func (l *scarce) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && strings.HasPrefix(c.RemoteAddr().String(), "127.0.0.9:") {
		_ = c.Close()
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return c, err
}

// Without files left, who waits gives way as well.
func TestNoFilesLeft(t *testing.T) {
	h := build(t, ratelimit.ConnOptions{}, func(inner net.Listener) net.Listener { return &scarce{Listener: inner} })
	waits := h.dial("127.0.0.2", half)
	h.dial("127.0.0.3", whole).hears(200) // after it
	h.dial("127.0.0.9", whole)
	waits.isCut()
	h.dial("127.0.0.4", whole).hears(200)
}
