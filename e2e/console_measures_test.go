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
