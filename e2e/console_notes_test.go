package e2e

import (
	"testing"
)

// Texts for notes in a real browser, from whoever keeps them to the note that they stand in.
func TestConsoleNotes(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	p := newPractice(t, unlimited...).serve(t, "")
	p.user(t, "nurse", object{"first_name": "Noah", "last_name": "Okafor"})
	p.user(t, "clinical_manager", object{"first_name": "Maria", "last_name": "Lindqvist"})
	p.patient(t, object{"last_name": "Tanaka"})
	var nothing object
	browser.run(t, p, "console_notes.mjs", object{"password": password}, &nothing)
}
