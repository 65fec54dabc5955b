package routes

import (
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/routes/web"
)

// rulesOfYear are the rules of a year, with what they change of the year before.
type rulesOfYear struct {
	billing.RulePack
	Changes []billing.RuleChange `json:"changes"`
}

func (a *api) listBillingRules(c *web.Call) error {
	return web.RespondSlice(c, web.Map(billing.RulePacks(), func(p billing.RulePack) rulesOfYear { return rulesOfYear{p, billing.ChangesIn(p)} }), 0)
}
