package routes

import (
	"cmp"
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
	if result.StoredReading {
		a.DeliveryWorker.Wake()
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

// unmatchedTextView is a text from a number that belongs to no patient, to several, or to one who is not
// monitored.
type unmatchedTextView struct {
	ID         string   `json:"id"`
	ReceivedAt string   `json:"received_at"`
	From       string   `json:"from"`
	Text       string   `json:"text"`
	PatientIDs []string `json:"patient_ids"` // those with the number that the caller may see, in any state but deleted
	ClosedBy   *string  `json:"closed_by"`
	ClosedAt   *string  `json:"closed_at"`
}

// listUnmatchedTexts lists the texts that are in no patient's thread.
func (a *api) listUnmatchedTexts(c *web.Call) error {
	q, p := c.Listing()
	status := q.OneOf("status", "open", "closed")
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfUnmatchedTexts(c.App, status != "closed", p.Offset(), p.Size)
	if a.confinedToTeams(c) {
		page, total, err = a.pageOfOwnTexts(c, status != "closed", p)
	}
	if err != nil {
		return err
	}
	views := make([]unmatchedTextView, 0, len(page))
	for _, m := range page {
		view, err := a.viewUnmatched(c, m)
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

// maxUnmatched limits how many texts, newest first, are searched for a caller confined to care
// teams.
const maxUnmatched = 2000

// pageOfOwnTexts returns a page of the texts that a caller confined to care teams may see, and
// their number.
func (a *api) pageOfOwnTexts(c *web.Call, isOpen bool, p web.Paging) (page []*collections.Message, total int, err error) {
	all, _, err := collections.PageOfUnmatchedTexts(c.App, isOpen, 0, maxUnmatched)
	if err != nil {
		return nil, 0, err
	}
	shown := map[string]bool{} // by number
	var own []*collections.Message
	for _, m := range all {
		number := m.Phone().Reveal()
		if _, known := shown[number]; !known {
			if _, shown[number], err = a.sendersInCare(c, m); err != nil {
				return nil, 0, err
			}
		}
		if shown[number] {
			own = append(own, m)
		}
	}
	return web.Cut(p, own), len(own), nil
}

// sendersInCare returns the patients with the text's number that the caller may see, and whether
// the caller may see the text: because one of them may have sent it, or no patient has its number.
func (a *api) sendersInCare(c *web.Call, m *collections.Message) (ids []string, isShown bool, err error) {
	all, err := inbox.Senders(c.App, m.Phone())
	if err != nil || !a.confinedToTeams(c) {
		return all, true, err
	}
	ids = []string{}
	for _, id := range all {
		inCare, err := a.isInCare(c, id)
		if err != nil {
			return nil, false, err
		}
		if inCare {
			ids = append(ids, id)
		}
	}
	return ids, len(all) == 0 || len(ids) > 0, nil
}

func (a *api) viewUnmatched(c *web.Call, m *collections.Message) (unmatchedTextView, error) {
	ids, _, err := a.sendersInCare(c, m)
	return unmatchedTextView{
		ID: m.Id, ReceivedAt: validate.FormatInstant(m.DueAt()), From: m.Phone().Reveal(), Text: m.Text().Reveal(), PatientIDs: ids,
		ClosedBy: orNull(m.ReadBy()), ClosedAt: instantOrNull(m.ReadAt()),
	}, err
}

// closeUnmatchedText records that a person dealt with an unmatched text. The text stays without a
// patient.
func (a *api) closeUnmatchedText(c *web.Call) error {
	m, err := collections.MessageByID(c.App, c.Request.PathValue("id"))
	if err != nil {
		return fault.OrMissing(err)
	}
	if _, isShown, err := a.sendersInCare(c, m); err != nil || !isShown {
		return cmp.Or(err, error(fault.Missing()))
	}
	if m, err = inbox.Close(c.App, "", m.Id, c.Actor(), c.Now); err != nil {
		return err
	}
	view, err := a.viewUnmatched(c, m)
	if err != nil {
		return err
	}
	return c.OK(view)
}
