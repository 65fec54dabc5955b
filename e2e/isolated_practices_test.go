package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cell is one practice: a process and a data folder with its own keys, reached under two host names through the proxy.
type cell struct {
	*practice
	name, addr string
	front      *proxy
	token      string
	patient    string
}

func (c *cell) apiHost() string     { return "api." + c.name + ".test" }
func (c *cell) webhookHost() string { return "hooks." + c.name + ".test" }

// newCell creates and starts a practice as an operator does, with its own keys.
func newCell(t *testing.T, name string) *cell {
	t.Helper()
	c := &cell{practice: &practice{Dir: filepath.Join(t.TempDir(), name)}, name: name, addr: freeAddr(t)}
	c.Env = strings.Split(strings.TrimSpace(c.must(t, c.Dir, "keys", "generate")), "\n")
	c.Env = append(c.Env, "VIGIL_RATE_LIMIT_USER=0", "VIGIL_RATE_LIMIT_ANON=0", "VIGIL_RATE_LIMIT_AUTH=0", "VIGIL_RATE_LIMIT_WEBHOOK=0",
		"VIGIL_TRUSTED_PROXY_HEADERS=X-Forwarded-For", "VIGIL_TRUSTED_PROXIES=127.0.0.1", "VIGIL_BACKUP_KEEP=0")
	c.WebhookSecret = valueOf(c.Env, "VIGIL_GATEWAY_WEBHOOK_SECRET")
	cmd := exec.Command(binary(t), "admin", "create", "--email", adminEmail, "--first-name", "Ada", "--last-name", "Minns", "--password-stdin", "--dir", c.Dir)
	cmd.Env, cmd.Stdin = environ(c.Env), strings.NewReader(password+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("admin create: %v\n%s", err, out)
	}
	c.serve(t, c.addr)
	return c
}

// call sends a request to the cell's API host through the proxy.
func (c *cell) call(t *testing.T, method, host, path, token, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.front.scheme+"://"+host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for ; len(headers) > 0; headers = headers[2:] {
		request.Header.Set(headers[0], headers[1])
	}
	response, err := c.front.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{method + " " + host + path, response.StatusCode, response.Header, read}
}

// populate signs in and enrolls one patient through the cell's public host.
func (c *cell) populate(t *testing.T) {
	t.Helper()
	login := encode(t, object{"email": adminEmail, "password": password})
	c.token = text(t, c.call(t, http.MethodPost, c.apiHost(), "/api/v1/auth/login/", "", login).expect(t, 200), "access")
	patient := encode(t, object{"first_name": "Ann", "last_name": c.name, "date_of_birth": "1950-01-02", "gender": "female", "gateway_patient_id": "GW-1"})
	c.patient = text(t, c.call(t, http.MethodPost, c.apiHost(), "/api/v1/patients/", c.token, patient).expect(t, 201), "id")
}

// Three practices behind one proxy are isolated from each other. One moves to another folder while devices send to its
// webhook, without losing an answered reading and without an effect on the others.
func TestThreeCells(t *testing.T) {
	t.Parallel()
	cells := []*cell{newCell(t, "elm"), newCell(t, "oak"), newCell(t, "ash")}
	front := startProxy(t, cells)
	for _, c := range cells {
		c.front = front
		c.populate(t)
	}
	for _, at := range cells {
		for _, other := range cells {
			wantIsolated(t, at, other)
		}
		wantNames(t, at)
	}
	moved, stays := cells[0], cells[1]
	load := startSenders(front.client, front.scheme+"://"+moved.webhookHost(), moved.WebhookSecret, "GW-1")
	load.await(t, 60)
	moved.move(t, func() {
		body := encode(t, measurement("GW-1", "BP-1", 118, 76, time.Now().Add(-time.Hour)))
		stays.call(t, http.MethodPost, stays.webhookHost(), webhook, "", body, signature(stays.WebhookSecret, body, time.Now())...).expect(t, 200)
	})
	load.await(t, 60)
	answered := load.stop()
	if there := moved.wantIntact(t); countMissing(answered, there) > 0 || len(there) < len(answered) {
		t.Errorf("of %d readings that were answered, %d are not there", len(answered), countMissing(answered, there))
	}
	moved.call(t, http.MethodGet, moved.apiHost(), "/api/v1/patients/"+moved.patient+"/", moved.token, "").expect(t, 200)
	t.Logf("%d readings answered across the move, by %s", len(answered), front.kind)
}

// wantIsolated checks that one practice's token, secret and ids are not valid at another.
func wantIsolated(t *testing.T, at, other *cell) {
	t.Helper()
	status, hook, patients := 200, 200, 200
	if at != other {
		status, hook, patients = 401, 401, 404
	}
	at.call(t, http.MethodGet, at.apiHost(), "/api/v1/patients/", other.token, "").expect(t, status)
	at.call(t, http.MethodGet, at.apiHost(), "/api/v1/patients/"+other.patient+"/", at.token, "").expect(t, patients)
	body := encode(t, measurement("GW-1", "BP-0", 118, 76, time.Now().Add(-2*time.Hour)))
	at.call(t, http.MethodPost, at.webhookHost(), webhook, "", body, signature(other.WebhookSecret, body, time.Now())...).expect(t, hook)
}

// wantNames checks which paths each host name of a cell forwards.
func wantNames(t *testing.T, c *cell) {
	t.Helper()
	wantAt(t, c.call(t, http.MethodGet, c.apiHost(), "/api/v1/patients/", c.token, "").expect(t, 200), object{"count": 1.0, "results.0.last_name": c.name})
	c.call(t, http.MethodGet, c.webhookHost(), "/health/", "", "").expect(t, 200)
	for _, path := range []string{"/api/v1/patients/", "/api/v1/auth/login/", "/_/", "/"} {
		c.call(t, http.MethodGet, c.webhookHost(), path, c.token, "").expect(t, 404)
	}
	c.call(t, http.MethodGet, c.apiHost(), "/_/", "", "").expect(t, 404)
	for _, name := range []string{"_superusers", "pbc_3142635823"} { // the same collection by its id
		c.call(t, http.MethodPost, c.apiHost(), "/api/collections/"+name+"/auth-with-password", "", `{"identity":"a@b.test","password":"x"}`).expect(t, 404)
	}
}

// move moves the cell to another folder, as to another machine with the same address: stop, back up, restore there, start.
// meanwhile runs while it is down.
func (c *cell) move(t *testing.T, meanwhile func()) {
	t.Helper()
	if err := c.Stop(t); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	c.Env = append(c.Env, "VIGIL_BACKUP_FOLDER="+filepath.Join(t.TempDir(), "backups"))
	c.must(t, c.Dir, "backup", "create")
	c.must(t, elsewhere, "backup", "restore")
	c.Dir = elsewhere
	c.serve(t, c.addr)
}

// proxy is the proxy before the cells, with a client that resolves their names to it.
type proxy struct {
	kind, scheme string
	client       *http.Client
}

// startProxy starts Caddy with deploy/Caddyfile and one line for each cell, or without Caddy a stand-in with the same routes.
func startProxy(t *testing.T, cells []*cell) *proxy {
	t.Helper()
	caddy, err := exec.LookPath("caddy")
	if err != nil || testing.Short() {
		return startStandInProxy(t, cells)
	}
	addr, home := freeAddr(t), t.TempDir()
	file := filepath.Join(home, "Caddyfile")
	if err := os.WriteFile(file, []byte(caddyfile(t, addr, cells)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(caddy, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = []string{"HOME=" + home, "XDG_DATA_HOME=" + home}
	journal, err := os.Create(filepath.Join(home, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = journal, journal, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(home, "caddy", "pki", "authorities", "local", "root.crt")
	roots := x509.NewCertPool()
	eventually(t, within, "Caddy has its certificates", func() bool {
		pem, err := os.ReadFile(root)
		return err == nil && roots.AppendCertsFromPEM(pem)
	})
	f := &proxy{"Caddy", "https", clientOf(addr, &tls.Config{RootCAs: roots})}
	for _, c := range cells {
		for _, host := range []string{c.apiHost(), c.webhookHost()} {
			eventually(t, within, "Caddy answers for "+host, func() bool {
				response, err := f.client.Get("https://" + host + "/health/?name=wanted")
				return err == nil && response.Body.Close() == nil
			})
		}
		wantVersions(t, addr, roots, c)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said, err := os.ReadFile(journal.Name()); err != nil || !strings.Contains(string(said), `"uri":"/health/"`) || strings.Contains(string(said), "wanted") {
			t.Errorf("Caddy's log lacks the paths, or contains the queries: %v\n%s", err, said)
		}
	})
	return f
}

// caddyfile returns deploy/Caddyfile with internal certificates, on another port, for these cells.
func caddyfile(t *testing.T, addr string, cells []*cell) string {
	t.Helper()
	shipped, err := os.ReadFile("deploy/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	global := "\tadmin off\n"
	text := strings.Replace(string(shipped), global, global+"\tlocal_certs\n\tskip_install_trust\n\thttps_port "+port+"\n", 1)
	before, _, found := strings.Cut(text, "\nimport practice ")
	if !found || before == string(shipped) {
		t.Fatal("deploy/Caddyfile does not have the expected form")
	}
	for _, c := range cells {
		before += fmt.Sprintf("\nimport practice %s %s %s", c.apiHost(), c.webhookHost(), c.addr)
	}
	return before + "\n"
}

// clientOf returns a client that resolves every name to one address.
func clientOf(addr string, secure *tls.Config) *http.Client {
	dialer := net.Dialer{}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: secure, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		},
	}}
}

// wantVersions checks that TLS 1.2 is accepted for the webhook's host only.
func wantVersions(t *testing.T, addr string, roots *x509.CertPool, c *cell) {
	t.Helper()
	for host, allowed := range map[string]bool{c.apiHost(): false, c.webhookHost(): true} {
		connection, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, ServerName: host, MaxVersion: tls.VersionTLS12})
		if (err == nil) != allowed {
			t.Errorf("%s with TLS 1.2: %v", host, err)
		}
		if err == nil {
			_ = connection.Close()
		}
	}
}

// startStandInProxy routes by the rules of deploy/Caddyfile, without TLS.
func startStandInProxy(t *testing.T, cells []*cell) *proxy {
	t.Helper()
	mux := http.NewServeMux()
	for _, c := range cells {
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: c.addr})
		proxy.ErrorLog = log.New(io.Discard, "", 0) // the service is down for a while
		mux.Handle(c.apiHost()+"/", proxy)
		for _, dashboard := range []string{"/_/", "/api/collections/_superusers/", "/api/collections/pbc_3142635823/"} {
			mux.Handle(c.apiHost()+dashboard, http.NotFoundHandler())
		}
		mux.Handle(c.webhookHost()+"/", http.NotFoundHandler())
		mux.Handle(c.webhookHost()+webhook+"{$}", proxy)
		mux.Handle(c.webhookHost()+"/health/{$}", proxy)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &proxy{"a stand-in, there being no Caddy here", "http", clientOf(server.Listener.Addr().String(), nil)}
}
