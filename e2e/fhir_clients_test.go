package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// nodeFolder copies a folder of scripts and installs its dependencies. It skips the test without Node or a package source.
func nodeFolder(t *testing.T, from string) (dir string) {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: third-party FHIR clients are not tested", name)
		}
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.FromSlash(from))); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--legacy-peer-deps")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}

// Third-party FHIR clients sign in by SMART Backend Services, read, search page by page, and export in bulk.
func TestThirdPartyFHIRClients(t *testing.T) {
	t.Parallel()
	dir := nodeFolder(t, "internal/vigiltest/readers")
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	p := newPractice(t, "VIGIL_PUBLIC_URL=http://"+addr).serve(t, addr)
	admin := p.Admin(t)
	made := p.post(t, "/api/v1/clients/", admin, object{
		"name": "Warehouse", "scopes": []string{"system/*.rs"},
		"jwks": jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "one", Use: "sig", Algorithm: "ES384"}}},
	}).expect(t, 201)
	patient, other := p.patient(t, nil), p.patient(t, object{"first_name": "Grace", "mrn": "MRN-2"})
	for n, whose := range []string{patient, other, patient, patient, other, patient, patient} {
		p.post(t, "/api/v1/ingestion/weight/", admin, object{
			"patient_id": whose, "weight_kg": 80, "measured_at": now().Add(-time.Duration(n+1) * time.Hour).Format(time.RFC3339),
		}).expect(t, 201)
	}
	run := exec.CommandContext(t.Context(), "node", "read.mjs", p.URL, text(t, made, "id"), "one", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), patient)
	run.Dir, run.Stderr = dir, os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}
	var found map[string]any
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for name, want := range map[string]any{
		"tokenURL": p.URL + "/api/v1/oauth/token/", "readings": 5.0, "distinct": 5.0, "pages": 3.0, "one": "Observation", "last": 1.0, "software": "4.0.1",
		"refused": 404.0, "patients": 2.0, "observations": 7.0, "since": 0.0,
	} {
		if found[name] != want {
			t.Errorf("%s is %v, want %v", name, found[name], want)
		}
	}
}
