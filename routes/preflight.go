package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/routes/web"
)

// preflightView holds the reasons for which a payer would reject an entry.
type preflightView struct {
	EntryID  string         `json:"entry_id"`
	ClaimID  string         `json:"claim_id"`
	OK       bool           `json:"ok"`
	Errors   []claims.Issue `json:"errors"`
	Warnings []claims.Issue `json:"warnings"`
}

func (a *api) preflightEntry(c *web.Call, entry *collections.BillingEntry) error {
	views, err := a.preflight(c, []*collections.BillingEntry{entry})
	if err != nil {
		return err
	}
	return c.Respond(views[0], c.RecordRead(audit.PatientRead, audit.ResourceBillingEntry, entry.Id, entry.PatientID()))
}

// listPreflight checks the entries of a month that are not yet sent: pending review or reviewed, and claims with a
// requested void.
func (a *api) listPreflight(c *web.Call) error {
	q, p := c.Listing()
	month := a.monthIn(c, q, "month")
	if err := q.Err(); err != nil {
		return err
	}
	filter := collections.EntryFilter{From: month.Start, To: month.End, States: []string{billing.PendingReview, billing.Reviewed, billing.VoidRequested}}
	page, total, err := collections.PageOfBillingEntries(c.App, filter, collections.EntryOrders["service_date"], p.Offset(), p.Size)
	if err != nil {
		return err
	}
	views, err := a.preflight(c, page)
	if err != nil {
		return err
	}
	if err := recordShown(c, audit.ResourceBillingEntry, "", page, (*collections.BillingEntry).PatientID); err != nil {
		return err
	}
	return web.RespondPage(c, p, total, views, 0)
}

func (a *api) preflight(c *web.Call, entries []*collections.BillingEntry) ([]preflightView, error) {
	list, err := a.Billing.Claims.Load(c.App, entries)
	if err != nil {
		return nil, err
	}
	today := a.Billing.Day(c.Now)
	return web.Map(list, func(claim claims.Claim) preflightView {
		found := claims.Preflight(claim, today)
		return preflightView{claim.EntryID, claim.ClaimID, found.OK(), found.Errors, found.Warnings}
	}), nil
}
