package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/claims"
)

// PreflightErrors stands among the reasons of a refusal for everything that a payer would refuse.
const PreflightErrors = "preflight_errors"

// preflightErrors finds what a payer would refuse, once the practice sends claims from here. Source: docs/decisions/claims.md, "Preflight".
func (e *Engine) preflightErrors(tx core.App, entry *collections.BillingEntry, now time.Time) ([]claims.Finding, error) {
	if e.Claims.Submitter.ID == "" {
		return nil, nil
	}
	list, err := e.Claims.Load(tx, []*collections.BillingEntry{entry})
	if err != nil {
		return nil, err
	}
	return claims.Preflight(list[0], e.Day(now)).Errors, nil
}
