package routes

import (
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/routes/web"
)

// selfAuditView is a billing audit of a month.
type selfAuditView struct {
	Month    string                 `json:"month"`
	Findings []reports.PatternMatch `json:"findings"`
}

// readSelfAudit lists entries by id only; opening an entry records the access to its patient.
func (a *api) readSelfAudit(c *web.Call) error {
	q := c.Query()
	month := a.monthIn(c, q, "month")
	if err := q.Err(); err != nil {
		return err
	}
	facts, err := reports.GatherAuditFacts(c.App, a.Zone, month)
	if err != nil {
		return err
	}
	return c.OK(selfAuditView{month.Start[:len("2006-01")], reports.FindPatterns(facts)})
}
