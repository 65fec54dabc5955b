package e2e

import (
	"testing"
)

// Note templates in a real browser, from their administration to the note that uses them.
func TestConsoleNotes(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	p := newPractice(t, append([]string{"VIGIL_EARLY_WARNING=false"}, noRateLimits...)...).serve(t, "")
	p.user(t, "nurse", object{"first_name": "Noah", "last_name": "Okafor"})
	p.user(t, "clinical_manager", object{"first_name": "Maria", "last_name": "Lindqvist"})
	p.patient(t, object{"last_name": "Tanaka"})
	var nothing object
	browser.run(t, p, "console_notes.mjs", object{"password": password}, &nothing)
}
