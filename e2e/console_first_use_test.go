package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// Obstacles found when a new user did a practice's tasks for the first time.
func TestConsoleFirstUse(t *testing.T) {
	browser, p := newConsole(t, 12)
	var did struct{ Who string }
	browser.run(t, p, "console_first_use.mjs", object{"password": sandbox.Password}, &did)
}

// Obstacles found by later new users, one task at a time.
func TestConsoleFirstUseTasks(t *testing.T) {
	browser, p := newConsole(t, 12)
	var done []string
	browser.run(t, p, "console_first_use_tasks.mjs", object{"password": sandbox.Password, "secret": demoSecret(t, p.Dir)}, &done)
}
