package messaging

import (
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
)

// practice is the key of the practice's part in the app's store.
const practiceKey = "vigil.messaging"

// Practice is the part of the settings that queued messages need.
type Practice struct {
	Name  string
	Hours Hours
}

// Enable lets the app queue messages; without it automatic ones are not stored.
func Enable(app core.App, p Practice) { app.Store().Set(practiceKey, p) }

// IsOn reports whether messaging is configured, and returns what queued messages need.
func IsOn(app core.App) (Practice, bool) {
	p, ok := app.Store().Get(practiceKey).(Practice)
	return p, ok
}

// RecipientOf returns the facts that decide whether a patient may be sent a message.
func RecipientOf(app core.App, p *collections.Patient, now time.Time) (Recipient, error) {
	agreed, err := collections.PatientsWithConsent(app, patients.ConsentMessaging, []string{p.Id}, now)
	return Recipient{
		Active: p.Active() && !p.Deleted(), Consent: agreed[p.Id], OnHold: p.Hold().InForce(now), StoppedAt: p.MessagingStoppedAt(),
		Wanted: p.Channels(), Phone: phi.Text(p.GetString(collections.PatientPhone)),
	}, err
}

// Automatic is a message that the service decides to send.
type Automatic struct {
	PatientID     string
	Template      Template
	RequestedKind string // the kind of reading that it requests
	Cause         string // what it is about: there is one message for each, ever
}

// QueueAutomatic stores an automatic message in the transaction of its event. A message that may
// not be sent now is stored as suppressed. Nothing is stored for a patient who cannot be reached at
// all, or for a cause that already has a message. Source: docs/decisions/messages.md, "When a
// message is sent".
func QueueAutomatic(tx core.App, a Automatic, now time.Time) (queued bool, err error) {
	practice, on := IsOn(tx)
	if !on {
		return false, nil
	}
	p, err := collections.FindPatient(tx, a.PatientID)
	if err != nil {
		return false, collections.IgnoreNotFound(err)
	}
	to, err := RecipientOf(tx, p, now)
	if err != nil {
		return false, err
	}
	channel := to.Channel()
	reason := to.SuppressionReason(channel, true)
	if reason != "" && reason != ReasonHold {
		return false, nil
	}
	zone := collections.Zone(p.TimeZone(), collections.PracticeZone(tx))
	if reason == "" && !practice.Hours.Include(now, zone) {
		reason = ReasonQuietHours
	}
	if reason == "" {
		earlier, err := collections.AutomaticMessages(tx, p.Id, now.Add(-LimitWindow))
		if err != nil {
			return false, err
		}
		reason = LimitReached(earlier, now, zone)
	}
	lang := notifications.Language(p.PreferredLanguage())
	m, added, err := collections.AddMessage(tx, collections.MessageDraft{
		PatientID: p.Id, Direction: collections.MessageOut, Channel: channel, State: collections.MessageQueued, Template: string(a.Template), Language: lang,
		Text: phi.Text(a.Template.Fill(lang, practice.Name, "")), RequestedKind: a.RequestedKind, Automatic: true, Cause: a.Cause, Author: "system", DueAt: now,
	}, now)
	if err != nil || !added {
		return false, err
	}
	if reason != "" {
		_, err = changeState(tx, m, []string{collections.MessageQueued}, collections.MessageChange{State: collections.MessageSuppressed, Reason: reason}, now)
		return false, err
	}
	return true, record(tx, audit.MessageCreate, m, audit.System(), m.State(), "", now)
}

// StaffMessage is a message that staff send.
type StaffMessage struct {
	Template Template
	Text     phi.Text // of [FreeText]
	Channel  string   // "" for the patient's
	Author   *collections.User
}

// QueueForStaff stores a message of staff. Outside the hours it waits for the next morning. If the
// patient may not be sent it, the error is an invalid_state fault with the reason; private content
// is a validation fault.
func QueueForStaff(app core.App, patientID string, s StaffMessage, by audit.Actor, now time.Time) (m *collections.Message, err error) {
	if s.Channel == collections.ChannelPortal {
		return putInPortal(app, patientID, s, by, now)
	}
	practice, on := IsOn(app)
	if !on {
		return nil, fault.State("invalid_state", "No messages are sent: VIGIL_MESSAGING is none.")
	}
	err = app.RunInTransaction(func(tx core.App) error {
		p, err := collections.FindPatient(tx, patientID)
		if err != nil {
			return fault.OrMissing(err)
		}
		if err := collections.Readable(p.ProxyRecord()); err != nil {
			return err
		}
		to, err := RecipientOf(tx, p, now)
		if err != nil {
			return err
		}
		if s.Channel == "" {
			s.Channel = to.Channel()
		}
		if reason := to.SuppressionReason(s.Channel, false); reason != "" {
			return fault.State("invalid_state", suppressionTexts[reason])
		}
		lang := notifications.Language(p.PreferredLanguage())
		if err := checkText(s, lang, practice.Name, knownOf(p, s.Author)); err != nil {
			return err
		}
		zone := collections.Zone(p.TimeZone(), collections.PracticeZone(tx))
		asks := ""
		if s.Template == TakeAgain || s.Template == MissedReading {
			asks = collections.AnyKind
		}
		m, _, err = collections.AddMessage(tx, collections.MessageDraft{
			PatientID: p.Id, Direction: collections.MessageOut, Channel: s.Channel, State: collections.MessageQueued, Template: string(s.Template), Language: lang, RequestedKind: asks,
			Text: phi.Text(s.Template.Fill(lang, practice.Name, s.Text.Reveal())), Author: by.Email, DueAt: practice.Hours.Next(now, zone),
		}, now)
		if err != nil {
			return err
		}
		return record(tx, audit.MessageCreate, m, by, m.State(), "", now)
	})
	return m, err
}

// suppressionTexts are the sentences for the reasons of [Recipient.SuppressionReason].
var suppressionTexts = map[string]string{
	ReasonArchived: "The patient is archived.", ReasonStopped: "The patient's phone sent STOP. Only START from that phone ends it.",
	ReasonNoConsent: "The patient has no consent of the type messaging in force. Record one first.", ReasonChannelOff: "The patient does not want messages on this channel.",
	ReasonNoPhone: "The patient has no phone number that can be dialed.",
}

// checkText checks what staff wrote.
func checkText(s StaffMessage, lang, practice string, known []phi.KnownPatient) error {
	text := strings.TrimSpace(s.Text.Reveal())
	switch {
	case s.Template != FreeText && text != "":
		return fault.Field("text", "Only free_text has a text.")
	case s.Template != FreeText:
		return nil
	case text == "":
		return fault.Field("text", "This field is required.")
	case len([]rune(text)) > MaxFreeText(lang, practice):
		return fault.Field("text", "Is too long: with the practice's name and the way to stop, a message has at most 160 characters.")
	}
	if kinds := PrivateContent(text, practice, known...); kinds != nil {
		return fault.Field("text", PrivateHint(kinds))
	}
	return nil
}

// knownOf returns the names that a text must not have: the patient's and the author's.
func knownOf(p *collections.Patient, author *collections.User) []phi.KnownPatient {
	who := p.Demographics()
	known := []phi.KnownPatient{{First: who.FirstName, Last: who.LastName, Identifiers: []string{p.MRN()}}}
	if author != nil {
		known = append(known, phi.KnownPatient{First: author.FirstName(), Last: author.LastName()})
	}
	return known
}

// changeState changes the state of a message and audits it.
func changeState(tx core.App, m *collections.Message, from []string, change collections.MessageChange, now time.Time) (bool, error) {
	did, err := collections.MoveMessage(tx, m.Id, from, change, now)
	if err != nil || !did {
		return false, err
	}
	return true, record(tx, audit.MessageUpdate, m, audit.System(), change.State, change.Reason, now)
}

// record appends an audit entry with the state, never the text.
func record(tx core.App, event audit.Event, m *collections.Message, by audit.Actor, state, reason string, now time.Time) error {
	changes := audit.Changes{"state": {New: state}, "template": {New: m.Template()}, "channel": {New: m.Channel()}}
	if reason != "" {
		changes["reason"] = audit.Change{New: reason}
	}
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceMessage, ResourceID: m.Id, PatientID: m.PatientID(), Changes: changes,
	}, now)
}
