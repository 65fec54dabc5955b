package hooks

import (
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// guardRate refuses a rate that the API would not take: amounts of entries are made of it, and stay as they were made.
func (h *hooks) guardRate(e *core.RecordEvent) error {
	if problem := billing.CheckRate(collections.RateOf(e.Record)); problem != "" {
		return router.NewBadRequestError(problem, nil)
	}
	return e.Next()
}

// guardFee does the same for the fee schedule.
func (h *hooks) guardFee(e *core.RecordEvent) error {
	if problem := billing.CheckFee(collections.FeeOf(e.Record)); problem != "" {
		return router.NewBadRequestError(problem, nil)
	}
	return e.Next()
}
