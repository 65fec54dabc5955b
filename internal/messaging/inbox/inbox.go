// Package inbox stores what patients text and acts on it: it stops and resumes messages, answers,
// escalates emergencies, stores requested readings, and leaves the rest to a person. A text and its
// effects are one transaction; the provider's id makes a repeat harmless. Package replies decides
// what a text means, package messaging sends the answers. Rules: docs/decisions/messages.md,
// "Replies".
package inbox

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/messaging/replies"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Result reports what a text caused.
type Result struct {
	IsRepeat      bool // it was received before, and nothing was done
	StoredReading bool // a reading was stored
	Answered      bool
	Language      string // of an answer
}

// requestWindow is how long a request for a reading is open.
const requestWindow = 24 * time.Hour

// incomingText is a text with what is known about its sender.
type incomingText struct {
	tx       core.App
	pipeline *ingest.Pipeline
	practice messaging.Practice
	text     messaging.Incoming
	by       audit.Actor
	received time.Time
	message  *collections.Message
	// senders are the patients who are not deleted and have the number, in any state; present are those who are monitored.
	senders, monitored []*collections.Patient
	reply              replies.Reply
	result             Result
}

// Receive stores a text and acts on it in one transaction. The caller must wake the worker that
// sends what was queued.
func Receive(app core.App, pipeline *ingest.Pipeline, text messaging.Incoming, by audit.Actor, now time.Time) (Result, error) {
	c := incomingText{pipeline: pipeline, text: text, by: by, received: now}
	return c.run(app, c.identify)
}

// ReceiveFromPortal stores what a patient wrote in the portal and acts on it. Emergencies are
// handled as in a text; commands and readings are not recognized.
func ReceiveFromPortal(app core.App, pipeline *ingest.Pipeline, patient *collections.Patient, text phi.Text, by audit.Actor, now time.Time) (*collections.Message, error) {
	c := incomingText{pipeline: pipeline, text: messaging.Incoming{Channel: collections.ChannelPortal, Text: text}, by: by, received: now}
	if !patient.Active() {
		return nil, fault.State("invalid_state", "The patient is archived.")
	}
	_, err := c.run(app, func() error {
		c.senders = []*collections.Patient{patient}
		c.monitored = c.senders
		return nil
	})
	return c.message, err
}

// run stores and acts; identify sets the senders.
func (c *incomingText) run(app core.App, identify func() error) (result Result, err error) {
	practice, _ := messaging.IsOn(app)
	c.practice = practice
	err = app.RunInTransaction(func(tx core.App) error {
		c.tx = tx
		if err := identify(); err != nil {
			return err
		}
		isNew, err := c.store()
		if err != nil || !isNew {
			result = Result{IsRepeat: true}
			return err
		}
		for _, step := range []func() error{c.read, c.applyCommand, c.escalate, c.storeReading, c.notifyStaff} {
			if err := step(); err != nil {
				return err
			}
		}
		result = c.result
		result.Language = c.language()
		return nil
	})
	return result, err
}

// identify finds the patients with the number.
func (c *incomingText) identify() error {
	found, err := patients.FindByPhone(c.tx, c.text.From)
	if err != nil {
		return err
	}
	for _, p := range found {
		if p.Deleted() {
			continue
		}
		c.senders = append(c.senders, p)
		if p.Active() {
			c.monitored = append(c.monitored, p)
		}
	}
	return nil
}

// sender returns the only patient with the number, nil for none or several.
func (c *incomingText) sender() *collections.Patient {
	switch {
	case len(c.monitored) == 1 && len(c.senders) == 1:
		return c.monitored[0]
	case len(c.senders) == 1:
		return c.senders[0]
	}
	return nil
}

// patientID returns the id of the only patient with the number, if monitored; otherwise "", and a
// person reads the text in the list of unmatched texts.
func (c *incomingText) patientID() string {
	if p := c.sender(); p != nil && p.Active() {
		return p.Id
	}
	return ""
}

// store stores the text; false if it was received before.
func (c *incomingText) store() (isNew bool, err error) {
	patient := c.patientID()
	c.message, isNew, err = collections.AddMessage(c.tx, collections.MessageDraft{
		PatientID: patient, Direction: collections.MessageIn, Channel: c.text.Channel, State: collections.MessageReceived,
		Text: c.text.Text, Phone: c.text.From, Author: authorPatient, ProviderID: c.text.ID, DueAt: c.received,
	}, c.received)
	if err != nil || !isNew {
		return isNew, err
	}
	return true, audit.Append(c.tx, audit.Entry{
		Event: audit.MessageReceive, Actor: c.by, ResourceType: audit.ResourceMessage, ResourceID: c.message.Id, PatientID: patient,
	}, c.received)
}

// authorPatient is the author of texts from a phone.
const authorPatient = "patient"

// read determines what the text means; the open request gives a bare number its meaning.
func (c *incomingText) read() error {
	if c.text.Channel == collections.ChannelPortal {
		c.reply = replies.Read(c.text.Text.Reveal(), replies.Requested{})
		c.reply.Command = replies.None
		return nil
	}
	asked := replies.Requested{}
	if p := c.sender(); p != nil && p.Active() && c.text.Channel != collections.ChannelVoice { // a pressed key is no reading
		var err error
		if asked.Kinds, err = askedKinds(c.tx, p.Id, c.received.Add(-requestWindow)); err != nil {
			return err
		}
		if asked.LastWeightKg, err = lastWeight(c.tx, p.Id, asked.Kinds, c.received); err != nil {
			return err
		}
	}
	c.reply = replies.Read(c.text.Text.Reveal(), asked)
	if c.text.Command != "" {
		c.reply.Command, c.reply.Values = replies.Command(c.text.Command), nil
	}
	return nil
}

// askedKinds returns the kinds of readings that messages requested of a patient since a time. One that names no kind requests what the patient's
// devices measure; a patient without a device may send any.
func askedKinds(tx core.App, patientID string, since time.Time) (kinds []vitals.Kind, err error) {
	requested, err := collections.RequestedReadings(tx, patientID, since)
	if err != nil {
		return nil, err
	}
	if slices.Contains(requested, collections.AnyKind) {
		requested = slices.DeleteFunc(requested, func(kind string) bool { return kind == collections.AnyKind })
		devices, err := collections.DevicesOfPatient(tx, patientID)
		if err != nil {
			return nil, err
		}
		for _, device := range devices {
			requested = append(requested, device.Kind())
		}
		if len(devices) == 0 {
			return vitals.Kinds, nil
		}
	}
	for _, kind := range vitals.Kinds {
		if slices.Contains(requested, string(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// applyCommand stops or resumes the messages of all patients with the number, and answers. It does not
// answer a repeated stop, or a command that the provider has already answered.
func (c *incomingText) applyCommand() error {
	changed := false
	for _, p := range c.senders {
		set := patients.StopMessages
		switch c.reply.Command {
		case replies.Stop:
		case replies.Start:
			set = patients.ResumeMessages
		default:
			continue
		}
		did, err := set(c.tx, p.Id, c.by, c.received)
		if err != nil {
			return err
		}
		changed = changed || did
	}
	if c.text.Command != "" {
		return nil
	}
	switch c.reply.Command {
	case replies.Stop:
		if changed || len(c.senders) == 0 {
			return c.answer(messaging.AnswerStop)
		}
	case replies.Start:
		if changed {
			return c.answer(messaging.AnswerStart)
		}
	case replies.Help:
		return c.answer(messaging.AnswerHelp)
	}
	return nil
}

// answerInterval is the shortest time between two equal answers to a number, so that two machines that answer each other stop.
const answerInterval = 10 * time.Minute

// answer queues an answer, at once and at any hour.
func (c *incomingText) answer(template messaging.Template) error {
	about := c.message.Id
	if c.text.From != "" {
		index, err := collections.BlindIndex(collections.PatientPhone, patients.PhoneForIndex(c.text.From))
		if err != nil {
			return err
		}
		about = index[:min(len(index), 32)] + "/" + c.received.Truncate(answerInterval).UTC().Format("20060102T1504")
	}
	lang, state := c.language(), collections.MessageQueued
	if c.text.Channel == collections.ChannelPortal {
		state = collections.MessageDelivered
	}
	_, added, err := collections.AddMessage(c.tx, collections.MessageDraft{
		PatientID: c.patientID(), Direction: collections.MessageOut, Channel: c.channel(), State: state,
		Template: string(template), Language: lang, Text: phi.Text(template.Fill(lang, c.practice.Name, "")), Phone: c.text.From, Author: "system",
		Cause: string(template) + "/" + about, DueAt: c.received,
	}, c.received)
	c.result.Answered = c.result.Answered || added
	return err
}

// channel returns the channel of an answer: a call is answered by a text.
func (c *incomingText) channel() string {
	if c.text.Channel == collections.ChannelPortal {
		return collections.ChannelPortal
	}
	return collections.ChannelSMS
}

// language returns the language of the sender's answers: that of the patients with the number if they agree, or that of the text.
func (c *incomingText) language() string {
	lang := ""
	for _, p := range c.senders {
		preferred := notifications.Language(p.PreferredLanguage())
		if p.PreferredLanguage() == "" || lang != "" && lang != preferred {
			lang = ""
			break
		}
		lang = preferred
	}
	if lang == "" && replies.IsSpanish(c.text.Text.Reveal()) {
		return messaging.Spanish
	}
	if lang == "" {
		return messaging.English
	}
	return lang
}

// excerpt shortens a text for a list.
func excerpt(text phi.Text) string {
	runes := []rune(strings.Join(strings.Fields(text.Reveal()), " "))
	if len(runes) > maxExcerpt {
		return string(runes[:maxExcerpt]) + "…"
	}
	return string(runes)
}

const maxExcerpt = 300
