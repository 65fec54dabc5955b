package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// systemdEnvironment reads an EnvironmentFile as systemd does: values in double quotes, with backslash escapes.
func systemdEnvironment(t *testing.T, name string) (env []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		setting, value, found := strings.Cut(strings.TrimSpace(line), "=")
		value, err := strconv.Unquote(value)
		if !found || err != nil {
			t.Fatalf("%s: %s (%v)", name, line, err)
		}
		env = append(env, setting+"="+value)
	}
	return env
}

// The rendered files start the service, Prometheus finds its metrics at the listed targets, and the proxy's line routes to
// it.
func TestRenderedFleetStarts(t *testing.T) {
	t.Parallel()
	_, port, _ := net.SplitHostPort(freeAddr(t))
	_, metrics, _ := net.SplitHostPort(freeAddr(t))
	folder := t.TempDir()
	list, out := filepath.Join(folder, "practices.yaml"), filepath.Join(folder, "rendered")
	text := fmt.Sprintf("domain: rpm.example.org\npractices:\n  - {name: elm, machine: 127.0.0.1, port: %s, metrics_port: %s, time_zone: America/Chicago}\n", port, metrics)
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	render := []string{"fleet", "render", list, "--out", out}
	if status, said, errOut := vigil(t, nil, "", render...); status != 0 || !strings.Contains(said, "1 practices, 4 files, 4 of them new") {
		t.Fatalf("%d\n%s%s", status, said, errOut)
	}
	if status, _, errOut := vigil(t, nil, "", append(render, "--check")...); status != 0 {
		t.Errorf("the same list again: %d\n%s", status, errOut)
	}
	practice := newPractice(t)
	practice.Env = append(practice.Env, systemdEnvironment(t, filepath.Join(out, "machines", "127.0.0.1", "elm.env"))...)
	practice.serve(t, "127.0.0.1:"+valueOf(practice.Env, "PORT"))
	lines, err := os.ReadFile(filepath.Join(out, "machines", "127.0.0.1", "practices.caddy"))
	if err != nil || !strings.Contains(string(lines), "\nimport practice elm.rpm.example.org elm-hooks.rpm.example.org "+strings.TrimPrefix(practice.URL, "http://")+"\n") {
		t.Errorf("the proxy reads %s (%v)", lines, err)
	}
	var targets []struct {
		Targets []string
		Labels  map[string]string
	}
	found, err := os.ReadFile(filepath.Join(out, "prometheus", "practices.yml"))
	if err != nil || yaml.Unmarshal(found, &targets) != nil || len(targets) != 1 || targets[0].Labels["practice"] != "elm" {
		t.Fatalf("Prometheus reads %s (%v)", found, err)
	}
	answer, err := http.Get("http://" + targets[0].Targets[0] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	figures, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(figures), "vigil_build_info{") {
		t.Errorf("no metrics at the listed target (%v)", err)
	}
}

// An invalid list renders nothing, and each problem names its practice.
func TestInvalidFleet(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	list, out := filepath.Join(folder, "practices.yaml"), filepath.Join(folder, "rendered")
	text := "domain: rpm.example.org\npractices:\n  - {name: elm, machine: m.example, port: 8101}\n  - {name: oak, machine: m.example, port: 8101, settings: {VIGIL_SMPT_HOST: x}}\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	status, said, errOut := vigil(t, nil, "", "fleet", "render", list, "--out", out)
	if status != 1 || said != "" || strings.Count(errOut, `vigil: "oak": `) != 3 {
		t.Errorf("%d %s\n%s", status, said, errOut)
	}
	wantNoFolder(t, out)
	if status, _, errOut := vigil(t, nil, "", "fleet", "render", list); status != 2 || !strings.Contains(errOut, "--out") {
		t.Errorf("without a folder: %d\n%s", status, errOut)
	}
}

// The program prints its license and those of its components.
func TestLicensesAreShown(t *testing.T) {
	t.Parallel()
	status, said, errOut := vigil(t, nil, "", "licenses", "--list")
	if status != 0 || !strings.HasPrefix(said, "vigil: Apache-2.0") || !strings.Contains(said, "github.com/pocketbase/pocketbase v") {
		t.Errorf("%d %s\n%s", status, said, errOut)
	}
	if status, all, errOut := vigil(t, nil, "", "licenses"); status != 0 || !strings.Contains(all, "END OF TERMS AND CONDITIONS") || len(all) < 10*len(said) {
		t.Errorf("%d, %d bytes\n%s", status, len(all), errOut)
	}
}
