package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950800_paid_codes.go", addPaidCodes) }

// addPaidCodes adds the code that a payer paid instead of the code of the claim.
func addPaidCodes(app core.App) error {
	return changeCollection(app, "payments", []string{
		`{"name": "paid_code", "type": "text", "id": "text1795950801", "help": "The code that the payer paid instead of the code of the claim.", "max": 48}`,
	})
}
