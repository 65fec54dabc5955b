package clearinghouse

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/vigilhealth/vigil/internal/x12"
)

// digestOf identifies a payment by its content, so that it is stored once for any number of files and envelopes that it comes in.
func digestOf(p x12.Remittance) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %d %s %s %q\n", p.PayerNumber, p.Trace, p.Total, p.PaidOn, p.Method, p.Payee.ID)
	if !p.MovesMoney() { // another one than the payment that may follow
		_, _ = fmt.Fprintf(h, "BPR %s %t\n", p.Handling, p.Debit)
	}
	for _, c := range p.Claims {
		_, _ = fmt.Fprintf(h, "CLP %q %s %d %d %q %v %q\n", c.ControlNumber, c.Status, c.Charge, c.Paid, c.PayerControlNumber, c.Adjustments, c.RemarkCodes)
		for _, l := range c.Lines {
			_, _ = fmt.Fprintf(h, "SVC %q %q %d %d %v %q\n", l.ControlNumber, l.Procedure, l.Charge, l.Paid, l.Adjustments, l.RemarkCodes)
		}
	}
	for _, a := range p.ProviderAdjustments {
		_, _ = fmt.Fprintf(h, "PLB %s %q %d\n", a.Reason, a.Reference, a.Amount)
	}
	return hex.EncodeToString(h.Sum(nil))
}
