package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// States of a mail.
const (
	MailPending = "pending"
	MailSent    = "sent"
	MailFailed  = "failed"
)

// Columns with the progress of a mail.
const (
	MailStatus        = "status"
	MailError         = "error"
	MailSentAt        = "sent_at"
	MailNextAttemptAt = "next_attempt_at"
	MailParameters    = "parameters"
)

// Mail is one queued or sent mail. Recipient and parameters are encrypted.
type Mail struct{ datedRecord }

// NewMail returns an unsaved mail that is due now. userID is "" until the recipient's account has been looked up.
func NewMail(app core.App, template, userID, recipient string, parameters map[string]string, now time.Time) (*Mail, error) {
	m, err := newRecord[Mail](app, Mails, map[string]any{
		"template": template, "user": userID, "recipient": recipient, "status": MailPending,
		"next_attempt_at": FormatInstant(now), "created_at": FormatInstant(now),
	})
	if err != nil {
		return nil, err
	}
	return m, m.SetParameters(parameters)
}

// SetParameters sets the parameters of the template.
func (m *Mail) SetParameters(parameters map[string]string) error {
	encoded, err := json.Marshal(parameters)
	m.Set("parameters", string(encoded))
	return wrap(err, "encode mail parameters")
}

// Parameters returns the opened parameters, or nil.
func (m *Mail) Parameters() map[string]string {
	var parameters map[string]string
	if json.Unmarshal([]byte(m.GetString("parameters")), &parameters) != nil {
		return nil
	}
	return parameters
}

// SetUser sets the recipient's account.
func (m *Mail) SetUser(id string) { m.Set("user", id) }

func (m *Mail) Template() string  { return m.GetString("template") }  // name of the text
func (m *Mail) UserID() string    { return m.GetString("user") }      // recipient's account; "" until looked up
func (m *Mail) Recipient() string { return m.GetString("recipient") } // address, opened
func (m *Mail) Attempts() int     { return m.GetInt("attempts") }     // including the current one

// LeaseMail leases the mail that has been due longest, by postponing its next attempt to the end of
// the lease. A not-found error means that none is due.
func LeaseMail(app core.App, now, lease time.Time) (*Mail, error) {
	id, err := queryValue[string](app, "claim mail", `UPDATE mails SET attempts = attempts + 1, next_attempt_at = {:lease} WHERE id =
		(SELECT id FROM mails WHERE status = 'pending' AND next_attempt_at <= {:now} ORDER BY next_attempt_at LIMIT 1) RETURNING id`,
		dbx.Params{"now": FormatInstant(now), "lease": FormatInstant(lease)})
	if err != nil {
		return nil, err
	}
	return FindMail(app, id)
}

// FindMail finds a mail by id.
func FindMail(app core.App, id string) (*Mail, error) {
	return find[Mail](app, Mails, dbx.HashExp{"id": id})
}

// CountMails counts a user's mails of one template since a time.
func CountMails(app core.App, userID, template string, since time.Time) (int, error) {
	return queryValue[int](app, "count mails", `SELECT COUNT(*) FROM mails WHERE user = {:user} AND template = {:template} AND created_at > {:since}`,
		dbx.Params{"user": userID, "template": template, "since": FormatInstant(since)})
}
