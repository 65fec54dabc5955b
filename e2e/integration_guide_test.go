package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Every section of docs/integrating.md is run in each of its languages, after that language's sign-in.

// section is a section of the page, with its code blocks by language.
type section struct {
	title, path string
	blocks      map[string]string
}

var uses = regexp.MustCompile("(?m)^Uses `[A-Z]+ ([^`]+)`")

func integratingSections(t *testing.T) (sections []section) {
	t.Helper()
	page, err := os.ReadFile("docs/integrating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		used := uses.FindStringSubmatch(text)
		if used == nil {
			t.Fatalf("section %q has no Uses line", title)
		}
		s := section{title, used[1], map[string]string{}}
		for _, language := range []string{"sh", "python", "ts"} {
			if _, rest, found := strings.Cut(text, "\n```"+language+"\n"); found {
				s.blocks[language], _, _ = strings.Cut(rest, "\n```")
			}
		}
		sections = append(sections, s)
	}
	return sections
}

// integrated is a practice with the credentials that an administrator gives to a program.
type integrated struct {
	*practice
	env    []string
	served map[string]any // by path
}

func newIntegrated(t *testing.T) *integrated {
	t.Helper()
	addr := freeAddr(t)
	p := newPractice(t, "VIGIL_PUBLIC_URL=http://"+addr, "VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS=127.0.0.1").serve(t, addr)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := p.Admin(t)
	secret := p.post(t, "/api/v1/clients/", admin, object{
		"name": "Reader", "scopes": []string{"ingest", "patients.read", "observations.read", "alerts.read", "changes.read", "system/*.rs"},
	}).expect(t, 201)
	signing := p.post(t, "/api/v1/clients/", admin, object{
		"name": "Signer", "scopes": []string{"ingest"},
		"jwks": jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "one", Use: "sig", Algorithm: "RS384"}}},
	}).expect(t, 201)
	patient := p.patient(t, nil)
	p.post(t, "/api/v1/ingestion/blood-pressure/", admin, bloodPressure(patient, 120, 80, time.Now().Add(-time.Hour))).expect(t, 201)
	p.post(t, "/api/v1/ingestion/blood-pressure/", admin, bloodPressure(patient, 121, 80, time.Now().Add(-2*time.Hour))).expect(t, 201)
	var contract struct{ Paths map[string]any }
	if err := json.Unmarshal(p.get(t, "/api/v1/schema/", "").expect(t, 200).body, &contract); err != nil {
		t.Fatal(err)
	}
	return &integrated{p, []string{
		"URL=" + p.URL, "CLIENT_ID=" + text(t, secret, "id"), "CLIENT_SECRET=" + text(t, secret, "client_secret"), "PATIENT=" + patient,
		"KEY_CLIENT_ID=" + text(t, signing, "id"), "KEY_FILE=" + file, "ADMIN_TOKEN=" + admin, "RECEIVER=http://127.0.0.1:9/hook",
	}, contract.Paths}
}

// expectedOutput is the expected output of each section.
var expectedOutput = map[string]string{
	"Sign in with a key":   "signed in for ingest",
	"Send a reading":       "stored as machine",
	"Send many readings":   "accepted",
	"Follow changes":       "followed",
	"Receive a webhook":    "received webhook.test",
	"Receive a webhook sh": "sends observation.created and alert.raised",
	"Read FHIR":            "read Observation",
	"Read FHIR sh":         "a searchset of Observations",
}

// runSections runs the sections in a language; command runs the sign-in followed by a section.
func (i *integrated) runSections(t *testing.T, language string, command func(section, program string) *exec.Cmd) {
	t.Helper()
	sections := integratingSections(t)
	signIn := sections[0].blocks[language]
	ran := 0
	for _, s := range sections[1:] {
		block, written := s.blocks[language]
		if !written && s.title != "A client that is generated" {
			t.Errorf("%s has no block in %s", s.title, language)
		}
		if !written || i.served[s.path] == nil {
			continue
		}
		ran++
		want := expectedOutput[s.title]
		if other, differs := expectedOutput[s.title+" "+language]; differs {
			want = other
		}
		cmd := command(s.title, signIn+"\n"+block+"\n")
		cmd.Env = append(append(cmd.Environ(), environ(i.env)...), "WEBHOOK_SECRET=whsec_bm9uZQ==", "PORT=1")
		run := func() ([]byte, error) { return cmd.CombinedOutput() }
		if strings.HasPrefix(want, "received") {
			run = func() ([]byte, error) { return i.runReceiver(t, cmd) }
		}
		if out, err := run(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s in %s prints, with %v:\n%s\nwant %q", s.title, language, err, out, want)
		}
	}
	if ran < 2 {
		t.Errorf("%d sections were run in %s", ran, language)
	}
}

// runReceiver runs a receiver and makes the service send it a test event.
func (i *integrated) runReceiver(t *testing.T, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	made := i.post(t, "/api/v1/webhooks/", i.Admin(t), object{"url": "http://" + addr + "/hook", "events": []string{"alert.raised"}, "active": false}).expect(t, 201)
	cmd.Env = append(cmd.Env, "PORT="+port, "WEBHOOK_SECRET="+text(t, made, "secret"))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, within, "the receiver takes the test", func() bool {
		sent := i.post(t, fmt.Sprintf("/api/v1/webhooks/%s/test/", text(t, made, "id")), i.Admin(t), object{}).expect(t, 200)
		return at(t, sent, "status") == "delivered"
	})
	err := cmd.Wait()
	return []byte(out.String()), err
}

func TestIntegratingInShell(t *testing.T) {
	t.Parallel()
	for _, needed := range []string{"bash", "curl", "jq", "openssl"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed", needed)
		}
	}
	newIntegrated(t).runSections(t, "sh", func(_, program string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", program)
	})
}

func TestIntegratingInPython(t *testing.T) {
	t.Parallel()
	i := newDrillPractice(t)
	packages := pythonPackages(t, "e2e/testdata/integrating/requirements.txt")
	i.runSections(t, "python", func(_, program string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "python3", "-u", "-c", program)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
		return cmd
	})
}

func TestIntegratingInTypeScript(t *testing.T) {
	t.Parallel()
	for _, needed := range []string{"node", "npm"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed", needed)
		}
	}
	i := newDrillPractice(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("e2e/testdata/integrating")); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install the packages: %v\n%s", err, out)
	}
	runIn(t, dir, nil, "npx", "--no-install", "openapi-typescript", i.URL+"/api/v1/schema/", "--output", "contract.d.ts")
	sections := integratingSections(t)
	for n, s := range sections[1:] {
		if s.blocks["ts"] != "" && i.served[s.path] != nil {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("section%d.ts", n)), []byte(sections[0].blocks["ts"]+"\n"+s.blocks["ts"]+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	runIn(t, dir, nil, "npx", "--no-install", "tsc", "--project", ".")
	i.runSections(t, "ts", func(title, _ string) *exec.Cmd {
		for n, s := range sections[1:] {
			if s.title == title {
				cmd := exec.CommandContext(t.Context(), "node", fmt.Sprintf("out/section%d.js", n))
				cmd.Dir = dir
				return cmd
			}
		}
		return nil
	})
}

// newDrillPractice returns a practice for `make drills`, which installs what the languages need; otherwise it skips the test.
func newDrillPractice(t *testing.T) *integrated {
	t.Helper()
	if os.Getenv("VIGIL_TEST_GENERATED") == "" {
		t.Skip("make drills runs the page in Python and TypeScript")
	}
	return newIntegrated(t)
}
