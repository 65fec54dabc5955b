package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950440_code_and_fee_lists.go", addListYears) }

// addListYears adds the fiscal years of the lists that have a diagnosis code, and the status of a fee.
func addListYears(app core.App) error {
	err := changeCollection(app, "icd10_codes", []string{
		`{"name": "years", "type": "text", "id": "text1795950441", "help": "Fiscal years of the imported lists with the code, each after a space.", "max": 500}`,
	}, "CREATE INDEX `idx_icd10_codes_years` ON `icd10_codes` (years) WHERE years != ''")
	if err != nil {
		return err
	}
	return changeCollection(app, "fee_schedule", []string{
		`{"name": "status", "type": "select", "id": "select1795950442", "help": "Empty for final. A proposed fee sets no amount.", "maxSelect": 1, "values": ["final", "proposed"]}`,
		`{"name": "shipped", "type": "bool", "id": "bool1795950443", "help": "The national list with which the practice started, until the practice imports it."}`,
	})
}
