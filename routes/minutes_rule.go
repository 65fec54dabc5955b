package routes

import (
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/routes/web"
)

type minutesRuleView struct {
	Month   string                   `json:"month"`
	Decided bool                     `json:"decided"` // the practice has set its rule
	Rules   []billing.TimeRuleResult `json:"rules"`
}

// compareMinutesRules answers how each rule for minutes would count a month. It names no patient.
func (a *api) compareMinutesRules(c *web.Call) error {
	q := c.Query()
	month := a.monthIn(c, q, "month")
	if err := q.Err(); err != nil {
		return err
	}
	results, err := a.Billing.CompareTimeRules(c.App, month, c.Now)
	return c.Respond(minutesRuleView{month.Start[:7], a.Billing.TimeRule != "", results}, err)
}
