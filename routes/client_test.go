package routes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A typed client generated from the contract compiles for a correct program and refuses one that breaks the contract.
// The tools are those of the console's lock file, which `make web` installs and `make test` requires.
func TestTypedClient(t *testing.T) {
	tools, err := filepath.Abs("../tools/console/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"openapi-typescript", "tsc"} {
		if _, err := os.Stat(filepath.Join(tools, tool)); err != nil {
			t.Skip("the console's tools are not installed: run make web")
		}
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node here")
	}
	dir := t.TempDir()
	program, err := os.ReadFile("testdata/client.ts")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "client.ts"), program, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(tool string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), filepath.Join(tools, tool), args...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", tool, err, out)
		}
	}
	run("openapi-typescript", "openapi.yaml", "--output", filepath.Join(dir, "contract.d.ts"))
	run("tsc", "--noEmit", "--strict", "--target", "ES2023", "--module", "ESNext", "--moduleResolution", "Bundler", "--lib", "ES2023,DOM,DOM.Iterable",
		filepath.Join(dir, "client.ts"))
}
