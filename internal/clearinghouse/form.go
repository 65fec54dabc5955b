package clearinghouse

import (
	"errors"
	"slices"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/x12"
)

// form is a claim as the 837P has it.
func (c *batchClaim) form() x12.Claim {
	told := c.serviceLines()
	lines := make([]claims.FormLine, len(told))
	for i, l := range told {
		lines[i] = claims.FormLine{Claim: l.Claim, Control: l.control}
	}
	return claims.Build837P(c.control, c.frequency, c.payerControl, lines)
}

// unrepresentableFault says which lines hold what the form cannot carry, such as a name in letters without a Latin form.
func (p batchPlan) unrepresentableFault(err error) error {
	var wrong x12.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	var refusals []Refusal
	for _, c := range p.claims {
		mine := slices.DeleteFunc(slices.Clone(wrong), func(w x12.FieldError) bool { return w.Claim != c.control && w.Claim != "" })
		found := claims.UnrepresentableFields(mine, c.lines[0].HasOtherSubscriber())
		for _, l := range c.lines {
			if len(found) > 0 && !l.isCarried { // nobody chose those
				refusals = append(refusals, Refusal{l.EntryID, found})
			}
		}
	}
	return fault.State("invalid_state", "The form of a claim cannot carry some of these lines.").
		With("warnings", []string{billing.PreflightErrors}).With("lines", refusals)
}
