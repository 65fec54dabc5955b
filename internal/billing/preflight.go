package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
)

// PreflightErrors stands among the reasons of a refusal for everything that a payer would refuse.
const PreflightErrors = "preflight_errors"

// preflight refuses to send what a payer would refuse, once the practice sends claims from here. What was found comes with it. Source:
// docs/decisions/claims.md, "Preflight".
func (e *Engine) preflight(tx core.App, entry *collections.BillingEntry, now time.Time) error {
	if e.Claims.Submitter.ID == "" {
		return nil
	}
	list, err := e.Claims.Load(tx, []*collections.BillingEntry{entry})
	if err != nil {
		return err
	}
	if found := claims.Preflight(list[0], e.Day(now)); !found.OK() {
		return fault.State("invalid_state", "A payer would refuse this claim; see its preflight.").
			With("warnings", []string{PreflightErrors}).With("preflight", found.Errors)
	}
	return nil
}
