package routes

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/messaging/inbox"
	"github.com/vigilhealth/vigil/internal/messaging/replies"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// inboxRows are the endpoints of texts from patients' phones.
func inboxRows() []route {
	return []route{
		{http.MethodPost, "/messaging/inbound/", authz.SignedByGateway, ratelimit.Webhook, (*api).receiveText},
		{http.MethodGet, "/messaging/unmatched/", authz.ReadUnmatchedTexts, ratelimit.User, (*api).listUnmatchedTexts},
		{http.MethodPost, "/messaging/unmatched/{id}/close/", authz.CloseUnmatchedTexts, ratelimit.User, (*api).closeUnmatchedText},
	}
}

// Texts is what takes texts from patients' phones.
type Texts struct {
	Inbox     *inbox.Engine
	Callbacks messaging.Callbacks
}

// emptyTwiML is the answer that makes Twilio send nothing; answers are sent as messages of their own, so that they are stored.
const emptyTwiML = `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`

// receivedView reports a stored text to the provider.
type receivedView struct {
	Status string `json:"status"` // accepted or duplicate
}

// receiveText takes a text from a patient's phone. Its answer is the same for known and unknown numbers.
// Source: docs/decisions/messages.md, "Replies".
func (a *api) receiveText(c *web.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	if err := a.Texts.Callbacks.Verify(c.Request.Header, c.Request.URL.RequestURI(), body, c.Now); err != nil {
		return a.auditUnsigned(c, body, err)
	}
	read := textOfHTTP
	if a.Texts.Callbacks.Form == messaging.FormTwilio {
		read = textOfTwilio
	}
	text, err := read(c, body)
	if err != nil {
		return err
	}
	text.Received = c.Now
	result, err := a.Texts.Inbox.Receive(c.App, text, audit.Gateway(c.Origin()))
	if err != nil {
		return fault.New(fault.Unavailable, "service_unavailable", "The text could not be stored.").Because(err)
	}
	if result.Filed {
		a.Transmissions.Wake()
	}
	if a.Texts.Callbacks.Form == messaging.FormTwilio {
		return c.Send(200, "text/xml; charset=utf-8", []byte(emptyTwiML))
	}
	view := receivedView{Status: "accepted"}
	if result.IsRepeat {
		view.Status = "duplicate"
	}
	return c.OK(view)
}

// maxText is in characters; a text message has up to 1,600.
const maxText = 4000

// textBody is a text in the form of Vigil's own provider interface.
type textBody struct {
	ID   validate.String `json:"id"`
	From validate.String `json:"from"`
	To   validate.String `json:"to"`
	Text validate.String `json:"text"`
}

func textOfHTTP(c *web.Call, raw []byte) (text inbox.Text, err error) {
	var body textBody
	if err := c.Parse(raw, &body); err != nil {
		return text, err
	}
	checks := validate.NewChecks()
	text.ID = checks.Text("id", body.ID, validate.Required(100).Identifier())
	text.From = phi.Text(checks.Text("from", body.From, validate.Required(40).Identifier()))
	checks.Text("to", body.To, validate.Optional(40).Identifier())
	if !body.Text.Given() {
		checks.Text("text", body.Text, validate.Required(maxText).Multiline())
	} else if len([]rune(body.Text.Value)) > maxText {
		checks.Reject("text", "Must have at most 4000 characters.")
	}
	text.Body = withoutControls(body.Text.Value)
	return text, checks.Err()
}

// withoutControls removes what the database cannot store; the rest of a text is kept as sent.
func withoutControls(text string) phi.Text {
	return phi.Text(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", ""))
}

// optOuts are the commands that Twilio handled. Source: Twilio, "Advanced Opt-Out", OptOutType.
var optOuts = map[string]replies.Command{"STOP": replies.Stop, "START": replies.Start, "HELP": replies.Help}

func textOfTwilio(_ *web.Call, raw []byte) (text inbox.Text, err error) {
	form, err := url.ParseQuery(string(raw)) // verified: it was parsed before
	if err != nil {
		return text, fault.Field("Body", "Must be a form.")
	}
	checks := validate.NewChecks()
	text.ID = checks.Text("MessageSid", validate.Of(form.Get("MessageSid")), validate.Required(100).Identifier())
	text.From = phi.Text(checks.Text("From", validate.Of(form.Get("From")), validate.Required(40).Identifier()))
	body := form.Get("Body")
	if runes := []rune(body); len(runes) > maxText {
		body = string(runes[:maxText])
	}
	if media := form.Get("NumMedia"); media != "" && media != "0" {
		body = strings.TrimSpace(body + "\n[" + media + " attachments, not stored]")
	}
	text.Body = withoutControls(body)
	text.Command = optOuts[strings.ToUpper(form.Get("OptOutType"))]
	return text, checks.Err()
}

// unmatchedTextView is a text from a number of no patient, or of several.
type unmatchedTextView struct {
	ID         string   `json:"id"`
	ReceivedAt string   `json:"received_at"`
	From       string   `json:"from"`
	Text       string   `json:"text"`
	PatientIDs []string `json:"patient_ids"` // those with the number, in any state but deleted
	ClosedBy   *string  `json:"closed_by"`
	ClosedAt   *string  `json:"closed_at"`
}

// listUnmatchedTexts lists the texts that no patient's thread has.
func (a *api) listUnmatchedTexts(c *web.Call) error {
	q, p := c.Listing()
	status := q.OneOf("status", "open", "closed")
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfUnmatchedTexts(c.App, status != "closed", p.Offset(), p.Size)
	if err != nil {
		return err
	}
	views := make([]unmatchedTextView, 0, len(page))
	for _, m := range page {
		view, err := viewUnmatched(c, m)
		if err != nil {
			return err
		}
		views = append(views, view)
	}
	if err := c.RecordRead(audit.MessageRead, audit.ResourceMessage, ""); err != nil {
		return err
	}
	return web.RespondPage(c, p, total, views, 0)
}

func viewUnmatched(c *web.Call, m *collections.Message) (unmatchedTextView, error) {
	ids, err := inbox.Senders(c.App, m.Phone())
	return unmatchedTextView{
		ID: m.Id, ReceivedAt: validate.FormatInstant(m.DueAt()), From: m.Phone().Reveal(), Text: m.Text().Reveal(), PatientIDs: ids,
		ClosedBy: orNull(m.ReadBy()), ClosedAt: instantOrNull(m.ReadAt()),
	}, err
}

// closeUnmatchedText records that a person dealt with a text of no certain patient. Its message stays without a patient.
func (a *api) closeUnmatchedText(c *web.Call) error {
	m, err := inbox.Close(c.App, c.Request.PathValue("id"), c.Actor(), c.Now)
	if err != nil {
		return err
	}
	view, err := viewUnmatched(c, m)
	if err != nil {
		return err
	}
	return c.OK(view)
}
