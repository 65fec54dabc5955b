package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/messaging/inbox"
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

// receivedView reports a stored text to the provider.
type receivedView struct {
	Status string `json:"status"` // accepted or duplicate
}

// receiveText takes a text from a patient's phone. Its answer is the same for known and unknown numbers.
// Source: docs/decisions/messages.md, "Replies".
func (a *api) receiveText(c *web.Call) error {
	body, err := a.verifiedByProvider(c)
	if err != nil {
		return err
	}
	text, err := a.Messages.Provider.ReadText(body)
	if err != nil {
		return err
	}
	result, err := inbox.Receive(c.App, a.IngestPipeline, text, audit.Gateway(c.Origin()), c.Now)
	if err != nil {
		return fault.New(fault.Unavailable, "service_unavailable", "The text could not be stored.").Because(err)
	}
	if result.Filed {
		a.Transmissions.Wake()
	}
	if result.Answered {
		a.Messages.Wake()
	}
	if markup := a.Messages.Provider.Markup(text, result.Language); markup != nil {
		return c.Send(http.StatusOK, "text/xml; charset=utf-8", markup)
	}
	view := receivedView{Status: "accepted"}
	if result.IsRepeat {
		view.Status = "duplicate"
	}
	return c.OK(view)
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
	m, err := inbox.Close(c.App, "", c.Request.PathValue("id"), c.Actor(), c.Now)
	if err != nil {
		return err
	}
	view, err := viewUnmatched(c, m)
	if err != nil {
		return err
	}
	return c.OK(view)
}
