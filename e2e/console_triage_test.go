package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// Triage in one line a patient, in a real browser.
func TestConsoleTriage(t *testing.T) {
	browser, p := newConsole(t, 60)
	told := object{"password": sandbox.Password, "secret": demoSecret(t, p.Dir)}
	browser.run(t, p, "console_triage.mjs", told, &map[string]any{})
}

// Looking at the thirty most urgent patients, answering what is open about each and going on: the list before took PREVIOUS.
func TestConsoleTriageCounted(t *testing.T) {
	browser, p := newConsole(t, 40)
	var did struct{ Patients, Keys, Clicks, Answered int }
	browser.run(t, p, "console_triage_count.mjs", object{"password": sandbox.Password}, &did)
	t.Logf("%+v", did)
}
