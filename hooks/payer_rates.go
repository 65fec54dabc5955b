package hooks

import (
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/internal/billing"
)

// guardRate refuses a rate that the API would not take: amounts of entries are made of it, and stay as they were made.
func (h *hooks) guardRate(e *core.RecordEvent) error {
	if problem := billing.CheckRate(e.Record.GetString("cpt_code"), e.Record.GetFloat("rate_cents"), e.Record.GetString("effective_date")); problem != "" {
		return router.NewBadRequestError(problem, nil)
	}
	return e.Next()
}
