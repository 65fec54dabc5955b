package routes

import (
	"net/http"
	"strconv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// remittanceRows are the endpoints of payers' payments.
func remittanceRows() []route {
	one := byUUID(collections.FindRemittance)
	return []route{
		{http.MethodGet, "/billing/remittances/", authz.ReadBillingReports.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listRemittances},
		{http.MethodGet, "/billing/remittances/{id}/", authz.ReadBillingReports.Or(authz.ScopeBillingRead), ratelimit.User, withRecord(one, (*api).readRemittance)},
		{http.MethodPost, "/billing/remittances/{id}/close/", authz.ManageBilling, ratelimit.User, withRecord(one, (*api).closeRemittance)},
		{http.MethodPost, "/billing/remittances/{id}/items/{ordinal}/close/", authz.ManageBilling, ratelimit.User, withRecord(one, (*api).closeRemittanceItem)},
	}
}

// remittanceView is a payment of a payer: posted + unposted - provider adjustments = payment amount.
type remittanceView struct {
	ID                  string                   `json:"id"`
	ClaimResponseID     string                   `json:"claim_response_id"`
	Payer               string                   `json:"payer"`
	TraceNumber         string                   `json:"trace_number"`
	PaymentAmount       billing.Cents            `json:"payment_amount"`
	PaymentDate         *string                  `json:"payment_date"`
	Method              string                   `json:"method"`
	Posted              billing.Cents            `json:"posted"`
	Unposted            billing.Cents            `json:"unposted"`
	ProviderAdjustments []providerAdjustmentView `json:"provider_adjustments"`
	Status              string                   `json:"status"`
	Items               []remittanceItemView     `json:"items"`
	Notes               *string                  `json:"notes"`
	ClosedBy            *string                  `json:"closed_by"`
	ClosedAt            *string                  `json:"closed_at"`
	CreatedAt           *string                  `json:"created_at"`
}

type providerAdjustmentView struct {
	Code      string        `json:"code"`
	Amount    billing.Cents `json:"amount"`
	Reference string        `json:"reference"`
}

// remittanceItemView is a part of a payment that a person resolves.
type remittanceItemView struct {
	Ordinal            int           `json:"ordinal"`
	Segment            string        `json:"segment"`
	ClaimControlNumber *string       `json:"claim_control_number"`
	PayerControlNumber *string       `json:"payer_control_number"`
	Reference          *string       `json:"reference"`
	Code               *string       `json:"code"`
	EntryIDs           []string      `json:"entry_ids"`
	Amount             billing.Cents `json:"amount"`
	Reason             string        `json:"reason"`
	ReasonText         string        `json:"reason_text"`
	Notes              *string       `json:"notes"`
	ClosedBy           *string       `json:"closed_by"`
	ClosedAt           *string       `json:"closed_at"`
}

// remittanceDetail has the posted lines too.
type remittanceDetail struct {
	remittanceView
	Lines []remittanceLineView `json:"lines"`
}

type remittanceLineView struct {
	EntryID            string        `json:"entry_id"`
	ClaimID            string        `json:"claim_id"`
	CPTCode            string        `json:"cpt_code"`
	ClaimControlNumber *string       `json:"claim_control_number"`
	PayerControlNumber *string       `json:"payer_control_number"`
	Kind               string        `json:"kind"`
	Amount             billing.Cents `json:"amount"`
	PaidCode           *string       `json:"paid_code"`
	Warnings           []string      `json:"warnings"`
}

// warnOtherCode is a warning of a posted line.
const warnOtherCode = "other_code"

func viewPostedLine(l collections.PostedLine) remittanceLineView {
	v := remittanceLineView{l.EntryID, l.ClaimID, l.CPTCode, orNull(l.Claim), orNull(l.PayerClaim), l.Kind, billing.Cents(l.Cents), orNull(l.PaidCode), []string{}}
	if l.PaidCode != "" {
		v.Warnings = append(v.Warnings, warnOtherCode)
	}
	if l.IsEarly {
		v.Warnings = append(v.Warnings, billing.PaidBeforeService)
	}
	return v
}

func viewRemittance(r collections.RemittanceRow, posted int64) (v remittanceView, err error) {
	items, err := r.Items()
	if err != nil {
		return v, err
	}
	notes, err := r.Notes()
	if err != nil {
		return v, err
	}
	v = remittanceView{
		ID: r.ID, ClaimResponseID: r.ResponseID, Payer: r.Payer, TraceNumber: r.Trace, PaymentAmount: billing.Cents(r.PaymentCents), PaymentDate: orNull(r.Date),
		Method: r.Method, Posted: billing.Cents(posted), ProviderAdjustments: []providerAdjustmentView{}, Status: r.Status, Items: []remittanceItemView{},
		Notes: orNull(notes.Reveal()), ClosedBy: orNull(r.ClosedBy), ClosedAt: instantOf(r.ClosedAt), CreatedAt: instantOf(r.CreatedAt),
	}
	for i, item := range items {
		if item.Reason == collections.ImportInterrupted {
			item.AmountCents -= posted
		}
		view := remittanceItemView{
			Ordinal: i + 1, Segment: item.Segment, PayerControlNumber: orNull(item.PayerControlNumber), Code: orNull(item.Code),
			EntryIDs: append([]string{}, item.EntryIDs...), Amount: billing.Cents(item.AmountCents), Reason: item.Reason,
			ReasonText: clearinghouse.ItemText(item), Notes: orNull(item.Notes), ClosedBy: orNull(item.ClosedBy), ClosedAt: instantOf(item.ClosedAt),
		}
		if item.Segment == clearinghouse.SegmentClaim {
			view.ClaimControlNumber = orNull(item.ControlNumber)
		} else {
			view.Reference = orNull(item.ControlNumber)
		}
		v.Items = append(v.Items, view)
		if item.Segment == clearinghouse.SegmentProvider {
			v.ProviderAdjustments = append(v.ProviderAdjustments, providerAdjustmentView{item.Code, view.Amount, item.ControlNumber})
		} else {
			v.Unposted += view.Amount
		}
	}
	return v, nil
}

func (a *api) listRemittances(c *web.Call) error {
	q, p := c.Listing()
	status := q.OneOf("status", collections.RemittanceBalanced, collections.RemittanceOpen, collections.RemittanceClosed)
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfRemittances(c.App, status, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	posted, err := collections.PostedOf(c.App, distinct(page, func(r collections.RemittanceRow) string { return r.ID }))
	if err != nil {
		return err
	}
	views := make([]remittanceView, len(page))
	for i, row := range page {
		if views[i], err = viewRemittance(row, posted[row.ID]); err != nil {
			return err
		}
	}
	return web.RespondPage(c, p, total, views, 0)
}

func (a *api) readRemittance(c *web.Call, r collections.RemittanceRow) error {
	view, err := viewRemittanceDetail(c.App, r)
	return c.Respond(view, err)
}

func viewRemittanceDetail(app core.App, r collections.RemittanceRow) (view remittanceDetail, err error) {
	posted, err := collections.PostedOf(app, []string{r.ID})
	if err != nil {
		return view, err
	}
	if view.remittanceView, err = viewRemittance(r, posted[r.ID]); err != nil {
		return view, err
	}
	lines, err := collections.PostedLines(app, r.ID)
	view.Lines = web.Map(lines, viewPostedLine)
	return view, err
}

func readNotes(c *web.Call) (string, error) {
	return web.Read(c, func(b transitionBody, checks *validate.Checks) string {
		return checks.Text("notes", b.Notes, validate.Required(4000).Multiline())
	})
}

func (a *api) closeRemittance(c *web.Call, r collections.RemittanceRow) error {
	return a.resolveRemittance(c, r, 0)
}

func (a *api) closeRemittanceItem(c *web.Call, r collections.RemittanceRow) error {
	ordinal, err := strconv.Atoi(c.Request.PathValue("ordinal"))
	if err != nil || ordinal < 1 {
		return fault.Missing()
	}
	return a.resolveRemittance(c, r, ordinal)
}

func (a *api) resolveRemittance(c *web.Call, r collections.RemittanceRow, ordinal int) error {
	notes, err := readNotes(c)
	if err != nil {
		return err
	}
	if err := clearinghouse.CloseRemittance(c.App, r.ID, ordinal, notes, c.Actor(), c.Now); err != nil {
		return err
	}
	if r, err = collections.FindRemittance(c.App, r.ID); err != nil {
		return err
	}
	return a.readRemittance(c, r)
}
