package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// A critical alert is never hidden; see console_emergency.mjs.
func TestConsoleEmergency(t *testing.T) {
	browser, p := newConsole(t, 30)
	told := object{"password": sandbox.Password, "secret": demoSecret(t, p.Dir)}
	browser.run(t, p, "console_emergency.mjs", told, &map[string]any{})
}
