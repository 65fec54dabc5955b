// Package clearinghouse carries claims to payers and their answers back: which lines stand together on a claim, the numbers by which they are
// known, the file that leaves, and what each answer does to the lines it names, once. It refuses to know how a file travels.
package clearinghouse

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// Engine sends the claims of one practice.
type Engine struct{ Billing *billing.Engine }
