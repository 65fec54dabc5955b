package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The states of a mail.
const (
	MailPending = "pending"
	MailSent    = "sent"
	MailFailed  = "failed"
)

// The columns of a mail that say how far it has come.
const (
	MailStatus        = "status"
	MailError         = "error"
	MailSentAt        = "sent_at"
	MailNextAttemptAt = "next_attempt_at"
	MailParameters    = "parameters"
)

// Mail is one mail of the outbox, dated when it was queued. Recipient and parameters are encrypted.
type Mail struct{ dated }

// NewMail returns an unsaved mail that is due now. userID is "" while nobody has looked up whose address it is.
func NewMail(app core.App, template, userID, recipient string, parameters map[string]string, now time.Time) (*Mail, error) {
	m, err := fresh[Mail](app, Mails, map[string]any{
		"template": template, "user": userID, "recipient": recipient, "status": MailPending,
		"next_attempt_at": Instant(now), "created_at": Instant(now),
	})
	if err != nil {
		return nil, err
	}
	return m, m.SetParameters(parameters)
}

// SetParameters sets what the template is filled with.
func (m *Mail) SetParameters(parameters map[string]string) error {
	encoded, err := json.Marshal(parameters)
	m.Set("parameters", string(encoded))
	return wrap(err, "encode mail parameters")
}

// Parameters are opened; nil when there are none.
func (m *Mail) Parameters() map[string]string {
	var parameters map[string]string
	if json.Unmarshal([]byte(m.GetString("parameters")), &parameters) != nil {
		return nil
	}
	return parameters
}

// SetUser says whose address it is.
func (m *Mail) SetUser(id string) { m.Set("user", id) }

func (m *Mail) Template() string  { return m.GetString("template") }  // the text
func (m *Mail) UserID() string    { return m.GetString("user") }      // whom the mail is for; "" while nobody has looked
func (m *Mail) Recipient() string { return m.GetString("recipient") } // the address, opened
func (m *Mail) Attempts() int     { return m.GetInt("attempts") }     // the tries to send, the one under way included

// ClaimMail takes the mail that has been due for longest and puts off its next attempt to the end of the lease, so that nobody else takes
// it meanwhile. A missing row means that none is due.
func ClaimMail(app core.App, now, lease time.Time) (*Mail, error) {
	id, err := queryValue[string](app, "claim mail", `UPDATE mails SET attempts = attempts + 1, next_attempt_at = {:lease} WHERE id =
		(SELECT id FROM mails WHERE status = 'pending' AND next_attempt_at <= {:now} ORDER BY next_attempt_at LIMIT 1) RETURNING id`,
		dbx.Params{"now": Instant(now), "lease": Instant(lease)})
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
		dbx.Params{"user": userID, "template": template, "since": Instant(since)})
}
