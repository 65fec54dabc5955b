package sandbox

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/validate"
)

// texts are what the practice writes again and again, by what a note is about.
var texts = []struct{ name, context, text string }{
	{"No answer", "any", "Called twice, nobody answered. Left a message to call back."},
	{"Measured again, in range", "alert", "Asked to rest five minutes and measure again: the second value is in range."},
	{"Took no medicine", "alert", "Has not taken the morning medicine. Takes it now, measures again in an hour."},
	{"Cuff was loose", "alert", "The cuff was loose. Shown how to put it on; measured again."},
	{"Feels well", "alert", "Feels well, no dizziness, no chest pain, no shortness of breath."},
	{"Sent to the emergency room", "escalation", "Sent to the emergency room; the provider knows."},
	{"Dose changed", "escalation", "The provider changed the dose. The patient has read it back."},
	{"Readings gone through", "note", "Went through the readings of the week with the patient, and how they measure."},
	{"Device explained", "note", "Explained how the device is used and charged. A reading came through while on the phone."},
}

// writeTexts gives the practice its templates for notes.
func writeTexts(app core.App, now time.Time) error {
	for _, one := range texts {
		body := templates.NoteBody{Name: validate.Of(one.name), Text: validate.Of(one.text), Context: validate.Of(one.context)}
		checks := validate.NewChecks()
		draft := body.Read(checks)
		if err := checks.Err(); err != nil {
			return fmt.Errorf("read the template %q: %w", one.name, err)
		}
		if _, err := templates.CreateNote(app, draft, audit.System(), now); err != nil {
			return fmt.Errorf("keep the template %q: %w", one.name, err)
		}
	}
	return nil
}
