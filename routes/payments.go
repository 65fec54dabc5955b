package routes

import (
	"fmt"
	"regexp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type postedMoneyView struct {
	Kind        string           `json:"kind"`
	Amount      billing.Cents    `json:"amount"`
	Date        *string          `json:"date"`
	Reference   *string          `json:"reference"`
	Payer       *string          `json:"payer"`
	Source      string           `json:"source"`
	Adjustments []adjustmentView `json:"adjustments"`
	Remarks     []string         `json:"remarks"`
	Reason      *string          `json:"reason"`
	CreatedBy   *string          `json:"created_by"`
	CreatedAt   *string          `json:"created_at"`
}

func viewPayment(p collections.Payment) postedMoneyView {
	return postedMoneyView{
		p.Kind, billing.Cents(p.AmountCents), orNull(p.Date), orNull(p.Reference), orNull(p.Payer), p.Source, viewAdjustments(p.Adjustments),
		append([]string{}, p.Remarks...), orNull(p.Reason.Reveal()), orNull(p.CreatedBy), instantOrNull(p.CreatedAt),
	}
}

func viewAdjustments(list []collections.Adjustment) []adjustmentView {
	return web.Map(list, func(a collections.Adjustment) adjustmentView {
		return adjustmentView{a.Group, a.CARC, append([]string{}, a.RARC...), billing.Cents(a.AmountCents)}
	})
}

// rarcPattern is a remittance advice remark code. Source: X12 code source 411.
var rarcPattern = regexp.MustCompile(`^[A-Z]{1,2}[0-9]{1,4}$`)

// maxRARC is the largest number of remark codes of one adjustment.
const maxRARC = 5

func (a *api) readAdjust(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	d := billing.AdjustmentDraft{
		Group: checks.Text("group", b.Group, validate.Required(0).OneOf(billing.AdjustmentGroups...)),
		CARC:  checks.Text("carc", b.CARC, validate.Optional(5)),
		RARC:  readRARC(checks, b.RARC), Reason: checks.Text("reason", b.Reason, validate.Required(500).Multiline()), Amount: readSignedCents(checks, "amount", b.Amount),
	}
	if d.CARC != "" && !billing.IsCARC(d.CARC) {
		checks.Reject("carc", "Must be a claim adjustment reason code (CARC), such as 45.")
	}
	return a.Billing.Adjust(d, c.Actor(), c.Now)
}

func readRARC(checks *validate.Checks, f validate.Strings) []string {
	if f.Wrong() || len(f.Value) > maxRARC {
		checks.Reject("rarc", fmt.Sprintf("Expected a list of at most %d texts.", maxRARC))
	}
	for i, code := range f.Value {
		if !rarcPattern.MatchString(code) {
			checks.Reject(fmt.Sprintf("rarc.%d", i), "Must be a remittance advice remark code (RARC).")
		}
	}
	return f.Value
}

// readSignedCents reads a nonzero dollar amount in whole cents; a negative amount is a reversal.
func readSignedCents(checks *validate.Checks, name string, f validate.Number) billing.Cents {
	value := checks.Number(name, f, true)
	if value == nil {
		return 0
	}
	sign := billing.Cents(1)
	if *value < 0 {
		*value, sign = -*value, -1
	}
	cents, ok := billing.CentsOf(*value)
	if !ok || cents == 0 {
		checks.Reject(name, "Must be a nonzero amount in whole cents, up to 1000000.")
	}
	return sign * cents
}
