package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Channels are the ways in which a patient wants to be reached.
type Channels struct {
	SMS   bool `json:"sms"`
	Voice bool `json:"voice"`
}

// DefaultChannels apply where nothing is stored.
var DefaultChannels = Channels{SMS: true}

// Channels returns the channels that the patient wants. Damaged JSON means none.
func (p *Patient) Channels() (wanted Channels) {
	if text := p.GetString(PatientMessaging); text == "" || text == "null" {
		return DefaultChannels
	}
	if p.UnmarshalJSONField(PatientMessaging, &wanted) != nil {
		return Channels{}
	}
	return wanted
}

func (p *Patient) PreferredLanguage() string     { return p.GetString(PatientPreferredLanguage) } // BCP 47, or ""
func (p *Patient) ReminderAt() string            { return p.GetString(PatientReminderAt) }        // 18:00, or "" for the practice's
func (p *Patient) MessagingStoppedAt() time.Time { return instantOf(p, PatientMessagingStoppedAt) }

// Directions of a message.
const (
	MessageOut = "out"
	MessageIn  = "in"
)

// Channels of a message.
const (
	ChannelSMS   = "sms"
	ChannelVoice = "voice"
	// ChannelPortal is the thread in the patient's portal account: nothing is sent outside.
	ChannelPortal = "portal"
)

// States of a message. Unknown means that the service ended while the provider's answer was awaited: it is never sent again.
const (
	MessageQueued     = "queued"
	MessageSending    = "sending"
	MessageSent       = "sent"
	MessageDelivered  = "delivered"
	MessageFailed     = "failed"
	MessageUnknown    = "unknown"
	MessageSuppressed = "suppressed"
	MessageReceived   = "received" // from the patient
)

// MessageStates lists all states.
var MessageStates = []string{
	MessageQueued, MessageSending, MessageSent, MessageDelivered, MessageFailed, MessageUnknown, MessageSuppressed, MessageReceived,
}

// Message is a text or call to or from a patient. Text and phone are encrypted.
type Message struct{ patientRecord }

// AnyKind in place of a kind: the message requests readings of several kinds.
const AnyKind = "any"

// MessageDraft is a message to store.
type MessageDraft struct {
	PatientID     string // "" for a message from a number of no or of several patients
	Direction     string
	Channel       string
	State         string // queued, received, or delivered in the portal
	Template      string
	Language      string
	Text          phi.Text
	Phone         phi.Text // of a message from a patient; of one to a patient it is set when it is sent
	RequestedKind string   // the kind of reading that it requests, or [AnyKind]
	Automatic     bool     // the service decided to send it: it counts toward the limits
	// Cause identifies what an automatic message is about: there is one message for each, ever. "" for others.
	Cause      string
	Author     string // email address, system or patient
	ProviderID string // unique
	DueAt      time.Time
}

// AddMessage stores a message. added is false if there is one with the same cause or provider's id: nothing is stored then.
func AddMessage(tx core.App, d MessageDraft, now time.Time) (m *Message, added bool, err error) {
	for column, value := range map[string]string{"cause": d.Cause, "provider_id": d.ProviderID} {
		if value == "" {
			continue
		}
		if m, err = find[Message](tx, Messages, dbx.HashExp{column: value}); !IsNotFound(err) {
			return m, false, err
		}
	}
	m, err = newRecord[Message](tx, Messages, map[string]any{
		"patient": d.PatientID, "direction": d.Direction, "channel": d.Channel, "state": d.State, "template": d.Template, "language": d.Language,
		"text": d.Text.Reveal(), "phone": d.Phone.Reveal(), "requested_kind": d.RequestedKind, "automatic": d.Automatic, "cause": d.Cause, "author": d.Author,
		"provider_id": d.ProviderID, "due_at": FormatInstant(d.DueAt), "created_at": FormatInstant(now), "updated_at": FormatInstant(now),
	})
	if err != nil {
		return nil, false, err
	}
	return m, true, wrap(tx.Save(m), "store a message")
}

// MessageByID finds a message, whether or not its sealed values open.
func MessageByID(app core.App, id string) (*Message, error) {
	return find[Message](app, Messages, dbx.HashExp{"id": id})
}

// MessageByProviderID finds the message to a patient with the provider's id.
func MessageByProviderID(app core.App, id string) (*Message, error) {
	return find[Message](app, Messages, dbx.HashExp{"provider_id": id, "direction": MessageOut})
}

// PageOfMessages returns a page of a patient's messages, newest first, and the total.
func PageOfMessages(app core.App, patientID string, offset, limit int) ([]*Message, int, error) {
	return pageOf[Message](app, Messages, dbx.HashExp{"patient": patientID}, []string{"created_at DESC", "id DESC"}, offset, limit)
}

// AutomaticMessages returns when a patient's automatic messages since a time were due; suppressed ones do not count.
func AutomaticMessages(app core.App, patientID string, since time.Time) (due []time.Time, err error) {
	texts, err := queryColumn[string](app, "count a patient's messages", `SELECT due_at FROM messages
		WHERE patient = {:patient} AND created_at >= {:since} AND automatic AND state != 'suppressed'`,
		dbx.Params{"patient": patientID, "since": FormatInstant(since)})
	for _, text := range texts {
		due = append(due, ParseInstant(text))
	}
	return due, err
}

// DueMessages returns the messages that are to be sent, the longest due first.
func DueMessages(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find due messages", `SELECT id FROM messages WHERE state = 'queued' AND due_at <= {:now}
		ORDER BY due_at, id LIMIT +{:limit}`, dbx.Params{"now": FormatInstant(now), "limit": limit})
}

// AbandonedMessages returns the messages that a worker began to send before a time and recorded no answer of.
func AbandonedMessages(app core.App, before time.Time) ([]string, error) {
	return queryColumn[string](app, "find abandoned messages", `SELECT id FROM messages WHERE state = 'sending' AND sent_at < {:before} ORDER BY sent_at`,
		dbx.Params{"before": FormatInstant(before)})
}

// MessageChange is a change of a message's state. Empty values stay as stored.
type MessageChange struct {
	State, Reason, ProviderID string
	DueAt, SentAt             time.Time
	Phone                     phi.Text
}

// MoveMessage changes a message that is in one of the states, and reports whether it was. Other columns stay, also those that cannot be opened.
func MoveMessage(tx core.App, id string, from []string, change MessageChange, now time.Time) (bool, error) {
	values := dbx.Params{"state": change.State, "reason": change.Reason, "updated_at": FormatInstant(now)}
	if change.ProviderID != "" {
		values["provider_id"] = change.ProviderID
	}
	if !change.DueAt.IsZero() {
		values["due_at"] = FormatInstant(change.DueAt)
	}
	if !change.SentAt.IsZero() {
		values["sent_at"] = FormatInstant(change.SentAt)
	}
	if change.Phone != "" {
		sealed, err := Seal(change.Phone.Reveal(), "messages.phone", id)
		if err != nil {
			return false, err
		}
		values["phone"] = sealed
	}
	n, err := updateCounted(tx, "change the state of a message", Messages, values, dbx.And(dbx.HashExp{"id": id}, AnyOf("state", from)))
	return n == 1, err
}

// RemindersDue selects the patients of a time zone with a reminder between two times of day.
type RemindersDue struct {
	Zone         string // "" for the practice's
	After, Until string // times of day; Until is included
	At           string // the time of patients without one
	Day          string // YYYY-MM-DD
	Now          time.Time
}

// PatientsToRemind returns the active patients with a consent to messages, a reminder due by that time, and none yet of the day.
func PatientsToRemind(app core.App, d RemindersDue) ([]string, error) {
	return queryColumn[string](app, "find patients to remind", `SELECT p.id FROM patients p
		WHERE p.active AND p.deleted_at = '' AND p.time_zone = {:zone} AND p.messaging_stopped_at = '' AND p.phone_index != ''
			AND CASE WHEN p.reminder_at = '' THEN {:at} ELSE p.reminder_at END > {:after}
			AND CASE WHEN p.reminder_at = '' THEN {:at} ELSE p.reminder_at END <= {:until}
			AND EXISTS (SELECT 1 FROM consents c WHERE c.patient = p.id AND c.type = 'messaging' AND c.granted_at <= {:now} AND c.revoked_at = ''
				AND (c.expires_at = '' OR c.expires_at > {:now}))
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.cause = 'missed_reading:' || p.id || ':' || {:day} AND m.cause != '') ORDER BY p.id`,
		dbx.Params{"zone": d.Zone, "at": d.At, "after": d.After, "until": d.Until, "day": d.Day, "now": FormatInstant(d.Now)})
}

// Cause is an event about a patient.
type Cause struct {
	ID        string `db:"id"`
	PatientID string `db:"patient"`
}

// AlertsRaisedSince returns the open alerts of a type that were raised since a time.
func AlertsRaisedSince(app core.App, kind string, since time.Time) ([]Cause, error) {
	return queryAll[Cause](app, "find recent alerts", `SELECT id, patient FROM alerts WHERE status = 'active' AND type = {:type}
		AND created_at >= {:since} ORDER BY id`, dbx.Params{"type": kind, "since": FormatInstant(since)})
}

// PromptsToMeasureAgain returns the announcements since a time that prompt a patient to measure again.
func PromptsToMeasureAgain(app core.App, since time.Time) ([]Cause, error) {
	return queryAll[Cause](app, "find prompts to measure again", `SELECT id, patient FROM announcements WHERE kind = 'measure_again' AND created_at >= {:since}
		ORDER BY id`, dbx.Params{"since": FormatInstant(since)})
}

func (m *Message) Cause() string      { return m.GetString("cause") }
func (m *Message) Direction() string  { return m.GetString("direction") }
func (m *Message) Channel() string    { return m.GetString("channel") }
func (m *Message) State() string      { return m.GetString("state") }
func (m *Message) Template() string   { return m.GetString("template") }
func (m *Message) Language() string   { return m.GetString("language") }
func (m *Message) Text() phi.Text     { return phi.Text(m.GetString("text")) }
func (m *Message) Phone() phi.Text    { return phi.Text(m.GetString("phone")) }
func (m *Message) Asks() string       { return m.GetString("requested_kind") }
func (m *Message) Reason() string     { return m.GetString("reason") }
func (m *Message) Automatic() bool    { return m.GetBool("automatic") }
func (m *Message) Author() string     { return m.GetString("author") }
func (m *Message) ProviderID() string { return m.GetString("provider_id") }
func (m *Message) DueAt() time.Time   { return instantOf(m, "due_at") }
func (m *Message) SentAt() time.Time  { return instantOf(m, "sent_at") }
func (m *Message) ReadAt() time.Time  { return instantOf(m, "read_at") }
func (m *Message) ReadBy() string     { return m.GetString("read_by") }
