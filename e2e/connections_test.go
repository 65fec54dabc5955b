package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// rawConn is the client end of a raw connection to the service.
type rawConn struct {
	net.Conn
	out *bufio.Reader
}

// openRaw opens a connection from an address and sends text.
func (p *practice) openRaw(t *testing.T, address, text string) *rawConn {
	t.Helper()
	connection, err := dialFrom(t.Context(), address, strings.TrimPrefix(p.URL, "http://"), text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return &rawConn{connection, bufio.NewReader(connection)}
}

// wantResponse reads the next response.
func (c *rawConn) wantResponse(t *testing.T, status int) answer {
	t.Helper()
	response, err := http.ReadResponse(c.out, nil)
	if err != nil || response.StatusCode != status {
		t.Fatalf("answered %v (%v), want %d", response, err, status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.Close {
		response.Header.Set("Connection", "close") // net/http removes it
	}
	return answer{"half a request", status, response.Header, body}
}

// wantClosed waits until the service closes the connection.
func (c *rawConn) wantClosed(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(c.out); len(rest) > 0 {
		t.Fatalf("received %q (%v) instead of the end", rest, err)
	}
}

func wantCode(t *testing.T, a answer, code string) {
	t.Helper()
	if got := at(t, a, "code"); got != code {
		t.Errorf("the code is %v, want %s\n%s", got, code, a.body)
	}
}

const alive = "GET /health/live HTTP/1.1\r\nHost: vigil\r\n\r\n"

// One address may hold 256 connections; the gateway at another address is still answered. A proxy has no such limit.
func TestConnectionLimitPerAddress(t *testing.T) {
	t.Parallel()
	p := newPressurePractice(t, "VIGIL_TRUSTED_PROXIES=127.0.0.8/31", "VIGIL_TRUSTED_PROXY_HEADERS=X-Forwarded-For", "VIGIL_READ_BODY_TIMEOUT=5m")
	var held []*rawConn
	for range 256 {
		held = append(held, p.openRaw(t, "127.0.0.2", halfBody))
	}
	for range 344 {
		refused := p.openRaw(t, "127.0.0.2", halfBody)
		_, _ = io.ReadAll(refused.out) // a 503, unless the connection was closed first
	}
	refused := p.openRaw(t, "127.0.0.2", "")
	a := refused.wantResponse(t, 503)
	vigiltest.CheckResponse(t, "POST", "/api/v1/auth/login/", 503, a.header, a.body)
	wantCode(t, a, "overloaded")
	if got := a.header.Get("Strict-Transport-Security"); got != "max-age=31536000; includeSubDomains" {
		t.Errorf("refused with strict transport %q", got)
	}
	p.deliver(t, "127.0.0.3", 3)
	for range 300 {
		p.openRaw(t, "127.0.0.9", alive).wantResponse(t, 200)
	}
	held[0].sendRest(t)
}

// sendRest completes a half-sent sign-in.
func (c *rawConn) sendRest(t *testing.T) {
	t.Helper()
	_, _ = io.WriteString(c.Conn, strings.Repeat("x", 60000-len(`{"email":"`)))
	wantCode(t, c.wantResponse(t, 400), "parse_error")
}

// When all connections are in use, a complete request is still served: half-sent requests are closed.
func TestHalfSentRequestsYield(t *testing.T) {
	t.Parallel()
	p := newPressurePractice(t, "VIGIL_MAX_CONNECTIONS=40")
	first := p.openRaw(t, "127.0.0.2", halfBody)
	for i := range 80 {
		p.openRaw(t, fmt.Sprintf("127.0.0.%d", 20+i%10), map[bool]string{true: halfBody, false: halfHead}[i%2 == 0])
	}
	p.deliver(t, "127.0.0.3", 5)
	first.sendRest(t) // the only connection of its address
}

// Headers and bodies have a deadline; handlers and streams have longer ones.
func TestSlowRequestsAreClosed(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_READ_HEADER_TIMEOUT=2s", "VIGIL_READ_BODY_TIMEOUT=2s").serve(t, "")
	stream := p.openRaw(t, "127.0.0.2", "GET /api/realtime HTTP/1.1\r\nHost: vigil\r\n\r\n")
	p.openRaw(t, "127.0.0.2", halfHead).wantClosed(t)
	for _, path := range []string{"/api/v1/auth/login/", "/api/v1/gateway/webhook/", "/api/v1/auth/password-reset/"} {
		slow := p.openRaw(t, "127.0.0.2", strings.Replace(halfBody, "/api/v1/auth/login/", path, 1))
		a := slow.wantResponse(t, 408)
		vigiltest.CheckResponse(t, "POST", path, 408, a.header, a.body)
		wantCode(t, a, "request_timeout")
		if a.header.Get("Connection") != "close" {
			t.Errorf("%s: the connection stays open", path)
		}
		slow.wantClosed(t)
	}
	slow := p.openRaw(t, "127.0.0.2", strings.Replace(halfBody, "/api/v1/auth/login/", "/api/realtime", 1))
	slow.wantResponse(t, 400) // PocketBase's own error
	slow.wantClosed(t)
	response, err := http.ReadResponse(stream.out, nil)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%v %v", response, err)
	}
	rest, err := io.ReadAll(response.Body) // until it ends without a subscription, much later
	if err != nil || !strings.Contains(string(rest), "PB_CONNECT") {
		t.Errorf("the stream was cut (%v) after %s", err, rest)
	}
}

// A refusal is answered before the rest of the body is sent, and the service does not wait for it.
func TestRefusalBeforeBody(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_RATE_LIMIT_ANON=1/1h", "VIGIL_RATE_LIMIT_AUTH=1/1h", "VIGIL_READ_BODY_TIMEOUT=1h").serve(t, "")
	p.post(t, "/api/v1/auth/login/", "", object{"email": "a@b.test", "password": "x"}).expect(t, 401)
	for _, test := range []struct {
		path   string
		status int
		code   string
	}{
		{"/api/v1/auth/login/", 429, "throttled"},
		{"/api/v1/patients/", 401, "not_authenticated"},
		{"/api/v1/patients/", 429, "throttled"},
	} {
		half := p.openRaw(t, "127.0.0.1", strings.Replace(halfBody, "/api/v1/auth/login/", test.path, 1))
		a := half.wantResponse(t, test.status)
		if got := at(t, a, "code"); got != test.code || a.header.Get("Connection") != "close" {
			t.Errorf("%s: %v, connection %q", test.path, got, a.header.Get("Connection"))
		}
		half.wantClosed(t)
	}
}

// Unauthenticated bodies for PocketBase's own routes are limited to the size of a sign-in.
func TestUnauthenticatedBodyLimit(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	large := fmt.Sprintf(`{"identity":%q,"password":"x"}`, strings.Repeat("x", 64<<10))
	declared, chunked := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(large), large)
	for _, test := range []struct {
		path, body string
		status     int // PocketBase's own status for a failed read
	}{
		{"/api/collections/patients/records", declared, 413},
		{"/api/realtime", declared, 413},
		{"/api/realtime", chunked, 400},
	} {
		sent := p.openRaw(t, "127.0.0.2", "POST "+test.path+" HTTP/1.1\r\nHost: vigil\r\nContent-Type: application/json\r\n"+test.body)
		if a := sent.wantResponse(t, test.status); a.header.Get("Connection") != "close" {
			t.Errorf("%s: the connection stays open", test.path)
		}
	}
	p.post(t, "/api/collections/patients/records", p.Superuser(t), object{"notes": large}).expect(t, 400) // read, and refused for its content
}

// Any number of concurrent sign-ins are answered in the contract's form, and those over the queue's limit immediately.
func TestSignInQueue(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	ctx, over := context.WithCancel(t.Context())
	defer over()
	var lock sync.Mutex
	refused := 0
	var people sync.WaitGroup
	for i := range 600 { // more than the queue of sixteen processors holds
		people.Go(func() {
			body := fmt.Sprintf(`{"email":"%d@vigil.test","password":"Wrong-Password-1"}`, i)
			request, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/api/v1/auth/login/", strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			response, err := from(fmt.Sprintf("127.0.0.%d", 20+i%10)).Do(request)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			defer response.Body.Close()
			read, _ := io.ReadAll(response.Body)
			if ctx.Err() != nil {
				return
			}
			vigiltest.CheckResponse(t, "POST", "/api/v1/auth/login/", response.StatusCode, response.Header, read)
			var says struct{ Code string }
			_ = json.Unmarshal(read, &says)
			switch {
			case response.StatusCode == 503 && says.Code == "overloaded" && response.Header.Get("Retry-After") == "5":
				lock.Lock()
				if refused++; refused == 20 {
					over() // the others disconnect
				}
				lock.Unlock()
			case response.StatusCode != 401:
				t.Errorf("answered %d %s", response.StatusCode, says.Code)
			}
		})
	}
	people.Wait()
	if refused < 20 {
		t.Errorf("%d were refused", refused)
	}
	eventually(t, within, "who comes after those that hung up signs in", func() bool {
		return p.post(t, "/api/v1/auth/login/", "", object{"email": adminEmail, "password": password}).status != 503
	})
	p.Admin(t) // not queued, once the service has detected the disconnects
}

// With TLS the connection limit applies before the handshake, and the handshake has the deadline of the headers.
func TestLimitsBeforeTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := certificate(t, "api.vigil.test")
	addr := freeAddr(t)
	p := newPractice(t, "VIGIL_TLS_CERT_FILE="+certFile, "VIGIL_TLS_KEY_FILE="+keyFile, "VIGIL_MAX_CONNECTIONS_PER_ADDRESS=3", "VIGIL_READ_HEADER_TIMEOUT=2s")
	begin(t, p.Env, "serve", "--dir", p.Dir, "--https", addr)
	p.URL = "http://" + addr
	ask := func(address string) error {
		dialer := &tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}, Config: &tls.Config{RootCAs: roots, ServerName: "api.vigil.test", MinVersion: tls.VersionTLS13}}
		connection, err := dialer.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return err
		}
		defer func() { _ = connection.Close() }()
		_, _ = io.WriteString(connection, alive)
		_, err = http.ReadResponse(bufio.NewReader(connection), nil)
		return err
	}
	eventually(t, within, "the service answers", func() bool { return ask("127.0.0.9") == nil })
	var silent []*rawConn
	for range 3 {
		silent = append(silent, p.openRaw(t, "127.0.0.2", ""))
	}
	p.openRaw(t, "127.0.0.2", "").wantClosed(t) // at once, without a response
	if err := ask("127.0.0.3"); err != nil {
		t.Error(err)
	}
	for _, s := range silent {
		s.wantClosed(t)
	}
	eventually(t, within, "there is room again", func() bool { return ask("127.0.0.2") == nil })
}

// A stream without a subscription is closed; a subscribed one stays open.
func TestUnsubscribedStreamsClose(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	open := func() (*bufio.Scanner, string) {
		response, err := http.ReadResponse(p.openRaw(t, "127.0.0.2", "GET /api/realtime HTTP/1.1\r\nHost: vigil\r\n\r\n").out, nil)
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("%v %v", response, err)
		}
		lines := bufio.NewScanner(response.Body)
		lines.Scan()
		return lines, strings.TrimPrefix(lines.Text(), "id:")
	}
	kept, id := open()
	body := encode(t, object{"clientId": id, "subscriptions": []string{"triage"}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/api/realtime", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", p.Admin(t))
	if a := sendRequestFrom(t, "127.0.0.2", request); a.status != 204 {
		t.Fatalf("subscribing answered %d: %s", a.status, a.body)
	}
	idle, _ := open() // opened later, so the other one has been open longer when this one ends
	for idle.Scan() {
	}
	if err := idle.Err(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	p.patient(t, object{})
	for kept.Scan() && !strings.Contains(kept.Text(), `"type":"patient"`) {
	}
	if !strings.Contains(kept.Text(), `"type":"patient"`) {
		t.Errorf("the subscribed stream ended: %v", kept.Err())
	}
}
