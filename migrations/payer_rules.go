package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950300_payer_rules.go", addPayerRules) }

// addPayerRules adds what differs between payers: corrected claims, the rules of minutes and days, and details of claim files.
func addPayerRules(app core.App) error {
	return changeCollection(app, "payers", []string{
		`{"name": "corrected_claims", "type": "select", "id": "select3318400101", "help": "Empty for the default of the claim filing code.", "maxSelect": 1, "values": ["replacement", "new_claim"]}`,
		`{"name": "minutes_rule", "type": "select", "id": "select3318400102", "help": "Empty for the practice's rule.", "maxSelect": 1, "values": ["interactive", "care_management"]}`,
		`{"name": "device_days", "type": "number", "id": "number3318400103", "help": "2 or 16 days with data; 0 for the rule of the date.", "onlyInt": true}`,
		`{"name": "receiver_ids", "type": "json", "id": "json3318400104", "help": "Further ids of the receiver of responses, ISA08.", "maxSize": 65536}`,
		`{"name": "send_ordering_provider", "type": "bool", "id": "bool3318400105"}`,
		`{"name": "modifiers", "type": "json", "id": "json3318400106", "help": "cpt_code, modifiers.", "maxSize": 65536}`,
	})
}
