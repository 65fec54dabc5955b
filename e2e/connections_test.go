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

// said is one end of a connection to the service.
type said struct {
	net.Conn
	out *bufio.Reader
}

// say opens a connection from an address and says something on it.
func (p *practice) say(t *testing.T, address, text string) *said {
	t.Helper()
	connection, err := dialFrom(t.Context(), address, strings.TrimPrefix(p.URL, "http://"), text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return &said{connection, bufio.NewReader(connection)}
}

// hears reads the next answer.
func (s *said) hears(t *testing.T, status int) answer {
	t.Helper()
	response, err := http.ReadResponse(s.out, nil)
	if err != nil || response.StatusCode != status {
		t.Fatalf("answered %v (%v), want %d", response, err, status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.Close {
		response.Header.Set("Connection", "close") // the client's library takes it out
	}
	return answer{"half a request", status, response.Header, body}
}

// isCut waits until the service closes the connection.
func (s *said) isCut(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(s.out); len(rest) > 0 {
		t.Fatalf("hears %q (%v) instead of the end", rest, err)
	}
}

func wantCode(t *testing.T, a answer, code string) {
	t.Helper()
	if got := at(t, a, "code"); got != code {
		t.Errorf("the code is %v, want %s\n%s", got, code, a.body)
	}
}

const alive = "GET /health/live HTTP/1.1\r\nHost: vigil\r\n\r\n"

// One address has 256 connections and no more, whatever it does with them; the gateway at another is answered. A proxy has as many as it likes.
func TestHeldConnections(t *testing.T) {
	t.Parallel()
	p := pressed(t, "VIGIL_TRUSTED_PROXIES=127.0.0.8/31", "VIGIL_TRUSTED_PROXY_HEADERS=X-Forwarded-For", "VIGIL_READ_BODY_TIMEOUT=5m")
	var held []*said
	for range 256 {
		held = append(held, p.say(t, "127.0.0.2", halfBody))
	}
	for range 344 {
		refused := p.say(t, "127.0.0.2", halfBody)
		_, _ = io.ReadAll(refused.out) // a 503, unless the end came first
	}
	refused := p.say(t, "127.0.0.2", "")
	a := refused.hears(t, 503)
	vigiltest.CheckResponse(t, "POST", "/api/v1/auth/login/", 503, a.header, a.body)
	wantCode(t, a, "overloaded")
	if got := a.header.Get("Strict-Transport-Security"); got != "max-age=31536000; includeSubDomains" {
		t.Errorf("refused with strict transport %q", got)
	}
	p.deliver(t, "127.0.0.3", 3)
	for range 300 {
		p.say(t, "127.0.0.9", alive).hears(t, 200)
	}
	held[0].isSentRest(t)
}

// isSentRest finishes a half-sent sign-in.
func (s *said) isSentRest(t *testing.T) {
	t.Helper()
	_, _ = io.WriteString(s.Conn, strings.Repeat("x", 60000-len(`{"email":"`)))
	wantCode(t, s.hears(t, 400), "parse_error")
}

// With every place taken, whoever comes with a whole request is served: the half-sent give way.
func TestAllPlacesTaken(t *testing.T) {
	t.Parallel()
	p := pressed(t, "VIGIL_MAX_CONNECTIONS=40")
	first := p.say(t, "127.0.0.2", halfBody)
	for i := range 80 {
		p.say(t, fmt.Sprintf("127.0.0.%d", 20+i%10), map[bool]string{true: halfBody, false: halfHead}[i%2 == 0])
	}
	p.deliver(t, "127.0.0.3", 5)
	first.isSentRest(t) // its address holds one alone
}

// Headers and bodies have their time; what is done with a request, and a stream, have more.
func TestSlowRequestsAreCut(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_READ_HEADER_TIMEOUT=2s", "VIGIL_READ_BODY_TIMEOUT=2s").serve(t, "")
	stream := p.say(t, "127.0.0.2", "GET /api/realtime HTTP/1.1\r\nHost: vigil\r\n\r\n")
	p.say(t, "127.0.0.2", halfHead).isCut(t)
	for _, path := range []string{"/api/v1/auth/login/", "/api/v1/gateway/webhook/", "/api/v1/auth/password-reset/"} {
		slow := p.say(t, "127.0.0.2", strings.Replace(halfBody, "/api/v1/auth/login/", path, 1))
		a := slow.hears(t, 408)
		vigiltest.CheckResponse(t, "POST", path, 408, a.header, a.body)
		wantCode(t, a, "request_timeout")
		if a.header.Get("Connection") != "close" {
			t.Errorf("%s: the connection is kept", path)
		}
		slow.isCut(t)
	}
	slow := p.say(t, "127.0.0.2", strings.Replace(halfBody, "/api/v1/auth/login/", "/api/realtime", 1))
	slow.hears(t, 400) // PocketBase's own words
	slow.isCut(t)
	response, err := http.ReadResponse(stream.out, nil)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%v %v", response, err)
	}
	rest, err := io.ReadAll(response.Body) // until it ends for want of a subscription, much later
	if err != nil || !strings.Contains(string(rest), "PB_CONNECT") {
		t.Errorf("the stream was cut (%v) after %s", err, rest)
	}
}

// Who is refused need not send the rest to hear of it, and nobody waits for it.
func TestRefusedHalfWay(t *testing.T) {
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
		half := p.say(t, "127.0.0.1", strings.Replace(halfBody, "/api/v1/auth/login/", test.path, 1))
		a := half.hears(t, test.status)
		if got := at(t, a, "code"); got != test.code || a.header.Get("Connection") != "close" {
			t.Errorf("%s: %v, connection %q", test.path, got, a.header.Get("Connection"))
		}
		half.isCut(t)
	}
}

// Strangers send no more to PocketBase's own routes than a sign-in takes.
func TestStrangersBodies(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	large := fmt.Sprintf(`{"identity":%q,"password":"x"}`, strings.Repeat("x", 64<<10))
	declared, chunked := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(large), large)
	for _, test := range []struct {
		path, body string
		status     int // PocketBase's own: it has no better word for what it finds while reading
	}{
		{"/api/collections/patients/records", declared, 413},
		{"/api/realtime", declared, 413},
		{"/api/realtime", chunked, 400},
	} {
		sent := p.say(t, "127.0.0.2", "POST "+test.path+" HTTP/1.1\r\nHost: vigil\r\nContent-Type: application/json\r\n"+test.body)
		if a := sent.hears(t, test.status); a.header.Get("Connection") != "close" {
			t.Errorf("%s: the connection is kept", test.path)
		}
	}
	p.post(t, "/api/collections/patients/records", p.Superuser(t), object{"notes": large}).expect(t, 400) // read, and refused for what it says
}

// However many sign in at once, each is answered in a form the contract knows, and those for whom there is no time at once.
func TestSignInQueue(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	ctx, over := context.WithCancel(t.Context())
	defer over()
	var lock sync.Mutex
	refused := 0
	var people sync.WaitGroup
	for i := range 600 { // more than wait for sixteen processors
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
					over() // the others hang up
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
	p.Admin(t) // nobody is before them, as soon as the service has seen them go
}

// With TLS the limit holds before the handshake, and the handshake has the time of the headers.
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
	var silent []*said
	for range 3 {
		silent = append(silent, p.say(t, "127.0.0.2", ""))
	}
	p.say(t, "127.0.0.2", "").isCut(t) // at once, and without a word
	if err := ask("127.0.0.3"); err != nil {
		t.Error(err)
	}
	for _, s := range silent {
		s.isCut(t)
	}
	eventually(t, within, "there is room again", func() bool { return ask("127.0.0.2") == nil })
}

// Nobody keeps a stream without a subscription, and who has one keeps it.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	open := func() (*bufio.Scanner, string) {
		response, err := http.ReadResponse(p.say(t, "127.0.0.2", "GET /api/realtime HTTP/1.1\r\nHost: vigil\r\n\r\n").out, nil)
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
	if a := askFrom(t, "127.0.0.2", request); a.status != 204 {
		t.Fatalf("subscribing answered %d: %s", a.status, a.body)
	}
	idle, _ := open() // later: the other has been open for longer once this one ends
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
