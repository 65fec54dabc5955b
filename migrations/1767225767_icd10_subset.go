package migrations

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The diagnosis codes that remote monitoring is about, from ICD-10-CM; `vigil icd10 import` takes in all of them.
//
//go:embed data/icd10.csv
var icd10Subset string

func init() {
	step("1767225767_icd10_subset.go", func(app core.App) error {
		rows, err := csv.NewReader(strings.NewReader(icd10Subset)).ReadAll()
		if err != nil {
			return fmt.Errorf("read the subset of ICD-10-CM: %w", err)
		}
		for _, row := range rows {
			_, err := app.DB().NewQuery(`INSERT INTO icd10_codes (code, description, category) VALUES ({:code}, {:text}, {:category}) ON CONFLICT DO NOTHING`).
				Bind(dbx.Params{"code": row[0], "text": row[1], "category": row[2]}).Execute()
			if err != nil {
				return fmt.Errorf("store %s: %w", row[0], err)
			}
		}
		return nil
	})
}
