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

// Going through the thirty most urgent patients: looking at each, answering what is open, with a note where it is critical, and noting the review
// where nothing is. The list before took 97 clicks for what now takes some 35 keys.
func TestConsoleTriageCounted(t *testing.T) {
	browser, p := newConsole(t, 40)
	var took struct{ Patients, Before, Keys, Clicks int }
	browser.run(t, p, "console_triage_count.mjs", object{"password": sandbox.Password}, &took)
	if took.Patients != 30 || 2*(took.Keys+took.Clicks) > took.Before {
		t.Errorf("%d patients took %d keys and %d clicks, before %d", took.Patients, took.Keys, took.Clicks, took.Before)
	}
	t.Logf("%+v", took)
}
