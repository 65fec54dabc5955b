package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// putCertificate writes a certificate that expires at a time.
func putCertificate(t *testing.T, certFile, keyFile string, serial int64, until time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "vigil.test"}, DNSNames: []string{"vigil.test"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// served returns the serial number of the presented certificate; 0 for none.
func served(addr string) int64 {
	connection, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return 0
	}
	defer func() { _ = connection.Close() }() // only inspected
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// SIGHUP reloads the certificate and reopens the log file without ending connections. Source: docs/decisions/operating.md,
// "Signals".
func TestSIGHUPReloads(t *testing.T) {
	t.Parallel()
	dir, addr, metrics := t.TempDir(), freeAddr(t), freeAddr(t)
	certFile, keyFile, log := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "vigil.log")
	expired := time.Now().Add(-time.Hour).Truncate(time.Second)
	putCertificate(t, certFile, keyFile, 1, expired)
	p := newPractice(t, "VIGIL_TLS_CERT_FILE="+certFile, "VIGIL_TLS_KEY_FILE="+keyFile, "VIGIL_LOG_FILE="+log, "VIGIL_METRICS_ADDR="+metrics)
	process := begin(t, p.Env, "serve", "--dir", p.Dir, "--https", addr)
	hangUp := func() {
		if err := process.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	logged := func(file string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			return ""
		}
		return string(content)
	}
	ends := func() float64 {
		samples, _ := scrape(t, metrics)
		return samples["vigil_certificate_not_after_timestamp_seconds"]
	}
	eventually(t, within, "the certificate is served", func() bool { return served(addr) == 1 })
	eventually(t, within, "an expired certificate is told", func() bool {
		return strings.Contains(logged(log), `"level":"ERROR","msg":"certificate","error":"it expired at`)
	})
	if ends() != float64(expired.Unix()) {
		t.Errorf("the metrics report the certificate's expiry as %v", ends())
	}
	wantCheck(t, p.Env, p.Dir, 1, map[string]string{"certificate": "fail"})

	until := time.Now().Add(90 * 24 * time.Hour).Truncate(time.Second)
	putCertificate(t, certFile, keyFile, 2, until)
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	hangUp()
	eventually(t, within, "the renewed certificate is served", func() bool { return served(addr) == 2 })
	eventually(t, within, "the log goes on in a new file", func() bool { return strings.Contains(logged(log), `"msg":"reloaded"`) })
	if ends() != float64(until.Unix()) {
		t.Errorf("ends at %v", ends())
	}
	if err := os.WriteFile(certFile, []byte("half a certi"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	eventually(t, within, "a broken file is told", func() bool { return strings.Contains(logged(log), "the service keeps serving the previous one") })
	if served(addr) != 2 {
		t.Error("an open connection was closed")
	}
	if err := process.Stop(t); err != nil {
		t.Errorf("ended with %v", err)
	}
	for _, line := range []string{`"msg":"stopping"`, `"msg":"stopped"`} {
		if !strings.Contains(logged(log), line) {
			t.Errorf("no %s\n%s", line, logged(log))
		}
	}
	if !strings.Contains(logged(log+".1"), `"msg":"listening"`) || !strings.Contains(logged(log+".1"), `"tls":"on"`) {
		t.Error(logged(log + ".1"))
	}
	if process.Output() != "" {
		t.Errorf("written outside the log file: %s", process.Output())
	}
}

// A certificate without TLS is reported. A SIGHUP before the listener is open does not end the process.
func TestCertificateWithoutTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	putCertificate(t, certFile, keyFile, 1, time.Now().Add(90*24*time.Hour))
	p := newPractice(t, "VIGIL_TLS_CERT_FILE="+certFile, "VIGIL_TLS_KEY_FILE="+keyFile).serve(t, "")
	for _, line := range []string{"plain HTTP is served", `"tls":"off"`} {
		eventually(t, within, line, func() bool { return strings.Contains(p.Output(), line) })
	}
	for range 3 {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, within, "it is told", func() bool { return strings.Contains(p.Output(), `"msg":"reloaded"`) })
	p.get(t, "/health/live", "").expect(t, 200)
}
