package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a self-signed certificate for the names, and returns its files and a pool that trusts it.
func certificate(t *testing.T, names ...string) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return certFile, keyFile, roots
}

// The API accepts TLS 1.3 only. The webhook's host also accepts 1.2, for the webhook and the health check only. Plain HTTP
// is refused. Source: docs/decisions/limits.md, "TLS 1.3 and 1.2".
func TestTLSVersions(t *testing.T) {
	const apiHost, hookHost = "api.vigil.test", "hook.vigil.test"
	certFile, keyFile, roots := certificate(t, apiHost, hookHost)
	addr := freeAddr(t)
	p := newPractice(t, "VIGIL_TLS_CERT_FILE="+certFile, "VIGIL_TLS_KEY_FILE="+keyFile, "VIGIL_WEBHOOK_HOST="+hookHost)
	process := begin(t, p.Env, "serve", "--dir", p.Dir, "--https", addr)

	ask := func(host string, version uint16, path string) (int, string, error) {
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host, MinVersion: version, MaxVersion: version},
		}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if response.TLS.Version != version {
			t.Errorf("%s: spoken was %s", host, tls.VersionName(response.TLS.Version))
		}
		return response.StatusCode, string(body), err
	}
	eventually(t, within, "the service answers", func() bool {
		status, _, err := ask(apiHost, tls.VersionTLS13, "/health/live")
		return err == nil && status == http.StatusOK
	})
	for _, test := range []struct {
		host    string
		version uint16
		path    string
		status  int // 0: the handshake fails
	}{
		{apiHost, tls.VersionTLS13, "/api/v1/schema/", 200},
		{apiHost, tls.VersionTLS12, "/api/v1/schema/", 0},
		{apiHost, tls.VersionTLS12, webhook, 0},
		{apiHost, tls.VersionTLS12, "/health/live", 0},
		{hookHost, tls.VersionTLS13, webhook, 405},
		{hookHost, tls.VersionTLS12, webhook, 405}, // a GET, so 405 shows that the route is reachable
		{hookHost, tls.VersionTLS12, strings.TrimSuffix(webhook, "/"), 405},
		{hookHost, tls.VersionTLS12, "/health/live", 200},
		{hookHost, tls.VersionTLS12, "/api/v1/schema/", 426},
		{hookHost, tls.VersionTLS12, "/", 426},
		{hookHost, tls.VersionTLS12, "/_/", 426},
		{hookHost, tls.VersionTLS12, webhook + "../../schema/", 426},
		{hookHost, tls.VersionTLS11, webhook, 0},
		{"", tls.VersionTLS12, webhook, 0},
	} {
		status, body, err := ask(test.host, test.version, test.path)
		if status != test.status || (err == nil) == (test.status == 0) {
			t.Errorf("%s %s %s: %d (%v), want %d", test.host, tls.VersionName(test.version), test.path, status, err, test.status)
		}
		if status == 426 && !strings.Contains(body, `"code":"tls_version"`) {
			t.Errorf("426 answers %s", body)
		}
	}
	connection, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, _ = connection.Write([]byte("GET /api/v1/schema/ HTTP/1.1\r\nHost: " + apiHost + "\r\n\r\n"))
	if answer, _ := io.ReadAll(connection); !strings.HasPrefix(string(answer), "HTTP/1.0 400 ") || strings.Contains(string(answer), "Location") {
		t.Errorf("plain HTTP is answered with %.200s", answer)
	}
	if strings.Contains(process.Output(), "panic") {
		t.Error(process.Output())
	}
}
