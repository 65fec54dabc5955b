package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795952001_former_digests.go", addFormerDigests) }

// addFormerDigests adds the digests of the files that a later one corrected, so that they are recognized again.
func addFormerDigests(app core.App) error {
	return changeCollection(app, "remittances", []string{
		`{"name": "former_digests", "type": "text", "id": "text1795952001", "help": "The digests of the files of this payment that a later one corrected, separated by spaces.", "max": 10000}`,
	})
}
