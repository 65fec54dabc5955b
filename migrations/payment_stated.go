package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795952000_payment_stated.go", addPaymentStated) }

// addPaymentStated adds the adjustments as the payer states them in its 835; a payment's
// adjustments are the change that they made.
func addPaymentStated(app core.App) error {
	return changeCollection(app, "payments", []string{
		`{"name": "stated", "type": "json", "id": "json1795952000", "help": "The adjustments that the payer states in its 835; null before this column and by hand.", "maxSize": 100000}`,
	})
}
