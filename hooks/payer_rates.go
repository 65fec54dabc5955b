package hooks

import (
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// guardRate refuses a rate that the API would reject, because entries take their amounts from it and keep them.
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
