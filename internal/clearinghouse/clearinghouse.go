// Package clearinghouse sends claims to payers and imports their responses: it groups entries into claims, assigns control numbers, writes the
// batch file, and applies each response to the service lines it names, once. It does not transport files. The rules are written in
// docs/decisions/claims.md.
package clearinghouse

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// Engine sends and imports for one practice.
type Engine struct{ Billing *billing.Engine }
