package patients

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/text/language"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/validate"
)

// ConsentMessaging is the type of the consent without which no message is sent. Source: docs/decisions/messages.md, "Consent".
const ConsentMessaging = "messaging"

// MessagingBody is the messaging member of a [Body].
type MessagingBody struct {
	SMS   validate.Boolean `json:"sms"`
	Voice validate.Boolean `json:"voice"`
}

// MessagingView is how a patient may be reached by message. Consent and StoppedAt are read-only.
type MessagingView struct {
	SMS       bool    `json:"sms"`
	Voice     bool    `json:"voice"`
	Consent   bool    `json:"consent"`
	StoppedAt *string `json:"stopped_at"`
}

// clockTime is a time of day.
var clockTime = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d$`)

// readMessaging adds the values of messaging that were sent to the draft.
func readMessaging(c *validate.Checks, b Body, d map[string]any) {
	if b.PreferredLanguage.Sent() {
		d[collections.PatientPreferredLanguage] = preferredLanguage(c, b.PreferredLanguage)
	}
	if b.Messaging.Sent() {
		d[collections.PatientMessaging] = readChannels(c, b.Messaging)
	}
	if b.ReminderAt.Sent() {
		d[collections.PatientReminderAt] = c.Text("reminder_at", b.ReminderAt, validate.Optional(5).Matching(clockTime, "Must be a time of day, such as 18:00."))
	}
}

// preferredLanguage returns a language tag in its canonical form. Source: BCP 47.
func preferredLanguage(c *validate.Checks, f validate.String) string {
	text := c.Text("preferred_language", f, validate.Optional(35))
	if text == "" {
		return ""
	}
	tag, err := language.Parse(text)
	if err != nil || strings.HasPrefix(tag.String(), "und") {
		c.Reject("preferred_language", "Must be a language tag, such as en or es-MX.")
		return text
	}
	return tag.String()
}

// readChannels returns nil for null: text messages only.
func readChannels(c *validate.Checks, f validate.Field[MessagingBody]) any {
	body, ok := validate.Nested(c, "messaging", f, msgObject)
	if !ok {
		return nil
	}
	wanted := collections.DefaultChannels
	if sms := c.Boolean("messaging.sms", body.SMS, false); sms != nil {
		wanted.SMS = *sms
	}
	if voice := c.Boolean("messaging.voice", body.Voice, false); voice != nil {
		wanted.Voice = *voice
	}
	encoded, err := json.Marshal(wanted)
	if err != nil {
		return nil // unreachable: two booleans always encode
	}
	return string(encoded)
}

// viewMessaging returns the view without the consent, which is another record.
func viewMessaging(p *collections.Patient) MessagingView {
	wanted := p.Channels()
	return MessagingView{SMS: wanted.SMS, Voice: wanted.Voice, StoppedAt: instant(p.MessagingStoppedAt())}
}

// AddMessagingConsent completes views with the consent to messages in force.
func AddMessagingConsent(app core.App, views []View, now time.Time) error {
	ids := make([]string, len(views))
	for i := range views {
		ids[i] = views[i].ID
	}
	agreed, err := collections.PatientsWithConsent(app, ConsentMessaging, ids, now)
	for i := range views {
		views[i].Messaging.Consent = agreed[views[i].ID]
	}
	return err
}

// StopMessages records that a patient's phone sent STOP, which ends all channels; did is false if
// messages were already stopped.
func StopMessages(app core.App, id string, by audit.Actor, now time.Time) (did bool, err error) {
	return setStopped(app, id, now, by, now)
}

// ResumeMessages records that a patient's phone sent START, which ends a stop; did is false if
// messages were not stopped.
func ResumeMessages(app core.App, id string, by audit.Actor, now time.Time) (did bool, err error) {
	return setStopped(app, id, time.Time{}, by, now)
}

// setStopped sets when the messages were stopped; zero resumes them.
func setStopped(app core.App, id string, at time.Time, by audit.Actor, now time.Time) (did bool, err error) {
	_, err = modify(app, id, audit.PatientUpdate, by, now, func(p *collections.Patient) error {
		if did = p.MessagingStoppedAt().IsZero() != at.IsZero(); !did {
			return errUnchanged
		}
		p.Set(collections.PatientMessagingStoppedAt, collections.FormatInstant(at))
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return did, err
}
