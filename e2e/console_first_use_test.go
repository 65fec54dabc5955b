package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// What stopped somebody who did the tasks of a practice for the first time.
func TestConsoleNewcomer(t *testing.T) {
	browser, p := newConsole(t, 12)
	var did struct{ Who string }
	browser.run(t, p, "console_newcomer.mjs", object{"password": sandbox.Password}, &did)
}

// What stopped the next ones, a task at a time.
func TestConsoleNewcomerAgain(t *testing.T) {
	browser, p := newConsole(t, 12)
	var done []string
	browser.run(t, p, "console_newcomer_again.mjs", object{"password": sandbox.Password, "secret": demoSecret(t, p.Dir)}, &done)
}
