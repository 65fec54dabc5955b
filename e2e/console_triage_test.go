package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The triage list with one row per patient, in a real browser.
func TestConsoleTriage(t *testing.T) {
	browser, p := newConsole(t, 60)
	told := object{"password": sandbox.Password, "secret": demoSecret(t, p.Dir)}
	browser.run(t, p, "console_triage.mjs", told, &map[string]any{})
}

// Reviewing the thirty most urgent patients, with an acknowledgment of open alerts, a note on critical ones, and a review
// where there are none. The previous list took 97 clicks for what takes about 35 keys now.
func TestConsoleTriageCounted(t *testing.T) {
	browser, p := newConsole(t, 40)
	var took struct{ Patients, Before, Keys, Clicks int }
	browser.run(t, p, "console_triage_count.mjs", object{"password": sandbox.Password}, &took)
	if took.Patients != 30 || 2*(took.Keys+took.Clicks) > took.Before {
		t.Errorf("%d patients took %d keys and %d clicks, before %d", took.Patients, took.Keys, took.Clicks, took.Before)
	}
	t.Logf("%+v", took)
}
