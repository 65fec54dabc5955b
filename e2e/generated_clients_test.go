package e2e

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Clients are generated from the contract that the built binary serves, with the generator versions in testdata/generated. A
// short program uses each: it signs in as a machine client, reads pages, sends a reading, and reads alerts, FHIR resources
// and billing.

// generatedPractice returns a practice with three patients, one of them with a billing entry, a client's id and secret, and
// a file with the contract.
func generatedPractice(t *testing.T) (p *practice, id, secret, contract string) {
	t.Helper()
	if os.Getenv("VIGIL_TEST_GENERATED") == "" {
		t.Skip("make drills generates clients")
	}
	p = newPractice(t).serve(t, "")
	admin := p.Admin(t)
	ada := p.patient(t, object{"first_name": "Ada", "icd10_codes": []string{"I10"}})
	p.patient(t, object{"first_name": "Bea"})
	p.patient(t, object{"first_name": "Cleo"})
	p.post(t, "/api/v1/billing/entries/manual-create/", admin, object{
		"patient_id": ada, "cpt_code": "99457", "service_date": time.Now().AddDate(0, 0, -2).Format(time.DateOnly), "duration_minutes": 20,
	}).expect(t, 201)
	made := p.post(t, "/api/v1/clients/", admin, object{
		"name": "Generated", "scopes": []string{"patients.read", "ingest", "observations.read", "alerts.read", "billing.read"},
	}).expect(t, 201)
	contract = filepath.Join(t.TempDir(), "openapi.yaml")
	if err := os.WriteFile(contract, p.get(t, "/api/v1/schema/?format=yaml", "").expect(t, 200).body, 0o600); err != nil {
		t.Fatal(err)
	}
	return p, text(t, made, "id"), text(t, made, "client_secret"), contract
}

// wantOutput compares a program's output line by line.
func wantOutput(t *testing.T, out string, want ...string) {
	t.Helper()
	if got := strings.TrimSpace(out); got != strings.Join(want, "\n") {
		t.Errorf("the program prints\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// runIn runs a tool in a folder and returns its output.
func runIn(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// generated is testdata/generated, relative to the module root.
const generated = "e2e/testdata/generated"

func TestGeneratedClientInPython(t *testing.T) {
	t.Parallel()
	p, id, secret, contract := generatedPractice(t)
	packages := pythonPackages(t, generated+"/requirements.txt")
	config, err := filepath.Abs(generated + "/python.yaml")
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(generated + "/client.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := []string{"PYTHONPATH=" + packages + string(os.PathListSeparator) + filepath.Join(dir, "client"), "PYTHONDONTWRITEBYTECODE=1"}
	runIn(t, dir, env, "python3", "-m", "openapi_python_client", "generate", "--path", contract, "--config", config, "--output-path", "client", "--fail-on-warning")
	wantOutput(t, runIn(t, dir, env, "python3", program, p.URL, id, secret),
		"patients: 3 3 Ada", "reading: 191 machine True", "alerts: ['critical']", "fhir: Observation", "billing: 47.87 create", "refused: not_found")
}

// pythonPackages returns a folder with the packages of a requirements file, installed once into the user's cache. It skips
// the test without a suitable Python, pip or a package source.
func pythonPackages(t *testing.T, requirements string) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys, pip; assert sys.version_info >= (3, 11); print(sys.version)").Output()
	if err != nil {
		t.Skip("python3 3.11 or later with pip is not installed: the Python client is not tested")
	}
	wanted, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache folder for the Python generator: %v", err)
	}
	sum := fnv.New32a()
	_, _ = fmt.Fprintf(sum, "%s%s", version, wanted)
	folder := filepath.Join(cache, "vigil-tests", fmt.Sprintf("generated-%08x", sum.Sum32()))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o750); err != nil {
		t.Fatal(err)
	}
	// Installed into a temporary folder first, so that no test sees a partial installation; concurrent tests may both
	// install.
	half, err := os.MkdirTemp(filepath.Dir(folder), "generated")
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "python3", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
		"--only-binary", ":all:", "--target", half, "--requirement", requirements)
	if out, err := install.CombinedOutput(); err != nil {
		_ = os.RemoveAll(half)
		t.Skipf("pip cannot install the packages: the Python client is not tested: %v\n%s", err, out)
	}
	if err := os.Rename(half, folder); err != nil {
		if _, there := os.Stat(folder); there != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(half)
	}
	return folder
}

func TestGeneratedClientInGo(t *testing.T) {
	t.Parallel()
	p, id, secret, contract := generatedPractice(t)
	dir := filepath.Join(t.TempDir(), "program")
	if err := os.CopyFS(dir, os.DirFS(generated+"/go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "vigil"), 0o750); err != nil {
		t.Fatal(err)
	}
	fetch := exec.CommandContext(t.Context(), "go", "mod", "download")
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Skipf("the modules of oapi-codegen are not available: the Go client is not tested: %v\n%s", err, out)
	}
	runIn(t, dir, nil, "go", "tool", "oapi-codegen", "-config", "config.yaml", contract)
	wantOutput(t, runIn(t, dir, nil, "go", "run", ".", p.URL, id, secret),
		"patients: 3 3", "reading: 191 machine true", "alert: critical", "fhir: final", "billing: 47.87 create", "refused: not_found")
}
