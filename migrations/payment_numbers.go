package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795956010_payment_numbers.go", addPaymentNumbers) }

// addPaymentNumbers adds the payer's number of the decision behind a payment; a reversal names the
// decision by it.
func addPaymentNumbers(app core.App) error {
	return changeCollection(app, "payments", []string{
		`{"name": "payer_control_number", "type": "text", "id": "text1795956011", "help": "The payer's own number of the decision.", "max": 50}`,
	})
}
