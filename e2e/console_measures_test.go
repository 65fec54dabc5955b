package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The measurements of the console's sparklines in a real browser; see console_measures.mjs.
func TestConsoleMeasures(t *testing.T) {
	browser, p := newConsole(t, 40)
	browser.run(t, p, "console_measures.mjs", object{"password": sandbox.Password}, &map[string]any{})
}

// A reload requests no module and no style again; see console_reload.mjs.
func TestConsoleReload(t *testing.T) {
	browser, p := newConsole(t, 30)
	var took struct {
		First, Reload struct{ Requests, Milliseconds int }
	}
	browser.run(t, p, "console_reload.mjs", object{"password": sandbox.Password}, &took)
	t.Logf("at 1.6 Mbit/s and 150 ms: %+v", took)
}
