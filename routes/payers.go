package routes

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type payerView struct {
	ID              int64             `json:"id"`
	Name            string            `json:"name"`
	PayerID         string            `json:"payer_id"`
	IsActive        bool              `json:"is_active"`
	EDIPayerID      *string           `json:"edi_payer_id"`
	ClaimFilingCode *string           `json:"claim_filing_code"`
	Address         *payerAddressView `json:"address"`

	CorrectedClaims      string                      `json:"corrected_claims"`
	MinutesRule          *string                     `json:"minutes_rule"`
	DeviceDays           *int                        `json:"device_days"`
	FilingLimitDays      *int                        `json:"filing_limit_days"`
	AppealLimitDays      *int                        `json:"appeal_limit_days"`
	ReceiverIDs          []string                    `json:"receiver_ids"`
	SendOrderingProvider bool                        `json:"send_ordering_provider"`
	Modifiers            []collections.CodeModifiers `json:"modifiers"`
}

type payerAddressView struct {
	Line1      string  `json:"line1"`
	Line2      *string `json:"line2"`
	City       string  `json:"city"`
	State      string  `json:"state"`
	PostalCode string  `json:"postal_code"`
}

func viewPayer(p collections.Payer) payerView {
	v := payerView{
		ID: p.Number(), Name: p.Name, PayerID: p.Code, IsActive: p.Active, EDIPayerID: orNull(p.EDI), ClaimFilingCode: orNull(p.Filing),
		CorrectedClaims: collections.CorrectedByNewClaim, MinutesRule: orNull(p.MinutesRule), ReceiverIDs: append([]string{}, p.ReceiverIDs...),
		SendOrderingProvider: p.SendOrderingProvider, Modifiers: append([]collections.CodeModifiers{}, p.Modifiers...),
	}
	if p.TakesReplacements() {
		v.CorrectedClaims = collections.CorrectedByReplacement
	}
	v.DeviceDays, v.FilingLimitDays, v.AppealLimitDays = positiveOrNull(p.DeviceDays), positiveOrNull(p.FilingLimitDays), positiveOrNull(p.AppealLimitDays)
	if a := p.Address; a != (collections.PayerAddress{}) {
		v.Address = &payerAddressView{a.Line1, orNull(a.Line2), a.City, a.State, a.PostalCode}
	}
	return v
}

// positiveOrNull returns nil for 0, which a column stores for no number.
func positiveOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (a *api) listPayers(c *web.Call) error {
	return web.RespondSliceOf(c, viewPayer)(collections.ListPayers(c.App))
}

func (a *api) createPayer(c *web.Call) error {
	draft, err := web.Read(c, billing.PayerBody.Read)
	if err != nil {
		return err
	}
	var payer collections.Payer
	err = c.App.RunInTransaction(func(tx core.App) (err error) {
		var taken bool
		if payer, taken, err = collections.AddPayer(tx, draft, c.Now); err != nil {
			return err
		}
		return recordPayerChange(c, tx, payer, taken)
	})
	return web.RespondWith(c.Created, viewPayer)(payer, err)
}

func (a *api) changePayer(c *web.Call) error {
	number, err := c.PathInteger("id")
	if err != nil {
		return err
	}
	stored, err := collections.FindPayer(c.App, number)
	if err != nil {
		return fault.OrMissing(err)
	}
	payer, err := web.Read(c, func(body billing.PayerBody, checks *validate.Checks) collections.Payer {
		return body.Change(checks, stored)
	})
	if err != nil {
		return err
	}
	err = c.App.RunInTransaction(func(tx core.App) error {
		taken, err := collections.ChangePayer(tx, payer)
		if err != nil {
			return err
		}
		return recordPayerChange(c, tx, payer, taken)
	})
	return web.RespondWith(c.OK, viewPayer)(payer, err)
}

func recordPayerChange(c *web.Call, tx core.App, payer collections.Payer, taken bool) error {
	if taken {
		return fault.Field("payer_id", "Another payer has this code. Use a different code.")
	}
	return recordSettingChange(c, tx, audit.ResourcePayer, payer.Code)
}

// recordSettingChange records a change of a practice table in the audit trail.
func recordSettingChange(c *web.Call, tx core.App, resourceType, resourceID string) error {
	return audit.Append(tx, audit.Entry{Event: audit.SettingsUpdate, Actor: c.Actor(), ResourceType: resourceType, ResourceID: resourceID}, c.Now)
}

type rateView struct {
	Payer         string        `json:"payer"`
	PayerID       *int64        `json:"payer_id"`
	CPTCode       string        `json:"cpt_code"`
	Rate          billing.Cents `json:"rate"`
	EffectiveDate string        `json:"effective_date"`
}

func viewRate(r collections.PayerRate) rateView {
	return rateView{r.PayerName, numberOrNull(r.PayerID), r.CPTCode, billing.Cents(r.RateCents), r.EffectiveDate}
}

func (a *api) listPayerRates(c *web.Call) error {
	return web.RespondSliceOf(c, viewRate)(collections.ListPayerRates(c.App))
}

func (a *api) createPayerRate(c *web.Call) error {
	type rateBody struct {
		PayerID       validate.Integer `json:"payer_id"`
		CPTCode       validate.String  `json:"cpt_code"`
		Rate          validate.Number  `json:"rate"`
		EffectiveDate validate.String  `json:"effective_date"`
	}
	var number *int64
	rate, err := web.Read(c, func(body rateBody, checks *validate.Checks) collections.PayerRate {
		number = checks.Integer("payer_id", body.PayerID, true)
		return collections.PayerRate{
			CPTCode: checks.Text("cpt_code", body.CPTCode, validate.Required(0).OneOf(a.catalogCodes()...)), RateCents: int64(readCents(checks, "rate", body.Rate)),
			EffectiveDate: checks.Date("effective_date", body.EffectiveDate, true),
		}
	})
	if err != nil {
		return err
	}
	payer, err := collections.FindPayer(c.App, *number)
	if err != nil {
		return fault.OrMissing(err)
	}
	rate.PayerID, rate.PayerName = payer.ID, payer.Name
	err = c.App.RunInTransaction(func(tx core.App) error {
		taken, err := collections.AddPayerRate(tx, rate, c.Now)
		if err != nil {
			return err
		}
		if taken {
			return fault.Field("effective_date", "The payer has another rate for this code from this day. Use a different day.")
		}
		return recordSettingChange(c, tx, audit.ResourcePayerRate, rate.CPTCode+" "+rate.EffectiveDate)
	})
	return web.RespondWith(c.Created, viewRate)(rate, err)
}

func (a *api) listICD10(c *web.Call) error {
	q, p := c.Listing()
	search, category := q.Text("search", 100), q.Text("category", 300)
	if err := q.Err(); err != nil {
		return err
	}
	codes, total, err := collections.SearchICD10(c.App, search, strings.ReplaceAll(search, ".", ""), category, p.Size, p.Offset())
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, codes, 0)
}

// catalogCodes returns all codes of the catalog, active or not.
func (a *api) catalogCodes() []string {
	return web.Map(a.Billing.Catalog(), func(row billing.CatalogRow) string { return row.Code })
}

func (a *api) listCPT(c *web.Call) error { return web.RespondSlice(c, a.Billing.Catalog(), 0) }
