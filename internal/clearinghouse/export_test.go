package clearinghouse

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/x12"
)

// Posting is what a decision posts to one line.
type Posting struct {
	Line        string
	Paid        x12.Cents
	Adjustments []collections.Adjustment
}

// Apportion is [apportion] for tests.
func Apportion(c x12.ClaimPayment, lines []collections.ClaimLine) (list []Posting, reason string) {
	parts, reason := apportion(c, lines)
	for _, d := range parts {
		list = append(list, Posting{d.line.Line, d.paid, d.adjustments})
	}
	return list, reason
}
