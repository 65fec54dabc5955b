package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
)

// sdkFolder copies internal/vigiltest/sdk and installs its dependencies. It skips the test without Node.
func sdkFolder(t *testing.T) (dir string) {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: the JavaScript SDK is not tested", name)
		}
	}
	dir = t.TempDir()
	files, err := filepath.Glob("internal/vigiltest/sdk/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}

// sdk runs a script of the folder and decodes its output.
func sdk(t *testing.T) func(script string, args ...string) map[string]any {
	t.Helper()
	dir := sdkFolder(t)
	return func(script string, args ...string) map[string]any {
		t.Helper()
		run := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
		run.Dir, run.Stderr = dir, os.Stderr
		out, err := run.Output()
		if err != nil {
			t.Fatalf("node %s: %v\n%s", script, err, out)
		}
		var answer map[string]any
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("node %s: %v in %s", script, err, out)
		}
		return answer
	}
}

// The official SDK uses Vigil's access token, and PocketBase identifies the subscriber by it. An unknown topic is refused
// with 403 for all callers; a forged token identifies no user.
func TestSDKSubscribesWithOurToken(t *testing.T) {
	run := sdk(t)
	p := newPractice(t)
	addr := freeAddr(t)
	p.URL = "http://" + addr
	known := make(chan string, 2)
	serveHere(t, p, addr, func(app core.App) {
		app.OnRealtimeSubscribeRequest().Bind(&hook.Handler[*core.RealtimeSubscribeRequestEvent]{
			Priority: -1,
			Func: func(e *core.RealtimeSubscribeRequestEvent) error {
				who := "nobody"
				if e.Auth != nil {
					who = e.Auth.Collection().Name + " " + e.Auth.Email()
				}
				known <- who
				return e.Next()
			},
		})
	})
	token := p.Admin(t)
	for _, test := range []struct{ token, who string }{{token, "users " + adminEmail}, {token[:len(token)-4] + "AAAA", "nobody"}} {
		answer := run("realtime.mjs", p.URL, test.token, "no-such-topic")
		if answer["valid"] != true || answer["status"] != 403.0 || answer["subscribed"] != false {
			t.Errorf("the SDK prints %v", answer)
		}
		if got := <-known; got != test.who {
			t.Errorf("the subscriber is %s, want %s", got, test.who)
		}
	}
}
