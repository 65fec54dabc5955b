package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of docs/quickstart.md are run from the second block on; the first clones and builds. With VIGIL_TEST_CLONE it
// also clones and builds, from this repository.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	for _, needed := range []string{"bash", "curl", "openssl"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed", needed)
		}
	}
	page, err := os.ReadFile("docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlocks(string(page))
	if len(blocks) < 8 || !strings.Contains(blocks[0], "make build") {
		t.Fatalf("found %d blocks", len(blocks))
	}
	dir, env := t.TempDir(), []string{"ADDR=" + freeAddr(t), "EMR=" + freeAddr(t)}
	if os.Getenv("VIGIL_TEST_CLONE") == "" {
		blocks = blocks[1:]
		if err := os.Symlink(binary(t), filepath.Join(dir, "vigil")); err != nil {
			t.Fatal(err)
		}
	} else {
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+here+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/vigilhealth/vigil")
	}
	script := "set -e -o pipefail -m\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + strings.Join(blocks, "\n")
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = dir, environ(env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, promised := range []string{
		"Administrator you@practice.example created.", `"status":"accepted"`, `"observation_id"`, `"status":"transmitted"`, `"subject":"pat-1001"`, "is good: 1 patients, 1 readings",
	} {
		if !strings.Contains(string(out), promised) {
			t.Errorf("the page promises %s\n%s", promised, out)
		}
	}
}

// shellBlocks returns the page's fenced blocks of shell commands.
func shellBlocks(page string) []string {
	var blocks []string
	for _, part := range strings.Split(page, "\n```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}
