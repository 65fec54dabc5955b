package migrations_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The newest decision of an earlier version gets the payer's number of its entry, unless the number may be of something else.
func TestNumbersOfFormerPayments(t *testing.T) {
	const entry, claim = "0198c000-0000-7000-8000-000000000001", "000477545C00001"
	for name, test := range map[string]struct {
		rows []string // kind, payer, source and claim
		want string   // numbers of the rows
	}{
		"one":                   {[]string{"payment primary 835 " + claim}, "ICN2"},
		"the newest":            {[]string{"payment primary 835 " + claim, "payment primary 835 " + claim}, "-,ICN2"},
		"a denial":              {[]string{"denial primary 835 " + claim}, "ICN2"},
		"before other payments": {[]string{"payment primary 835 " + claim, "payment patient hand -", "payment secondary 835 " + claim, "refund primary hand -"}, "ICN2,-,-,-"},
		"reversed":              {[]string{"payment primary 835 " + claim, "reversal primary 835 " + claim}, "-,-"},
		"corrected":             {[]string{"payment primary 835 " + claim, "reversal primary 835 " + claim, "payment primary 835 " + claim}, "-,-,ICN2"},
		"sent again":            {[]string{"denial primary 835 " + claim, "reopening  hand -"}, "-,-"},
		"another claim":         {[]string{"payment primary 835 000477541C00001"}, "-"},
		"by hand":               {[]string{"payment primary hand -"}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			app := vigiltest.NewApp(t)
			run := func(sql string, args map[string]any) {
				t.Helper()
				if _, err := app.DB().NewQuery(sql).Bind(args).Execute(); err != nil {
					t.Fatal(err)
				}
			}
			run("DELETE FROM _migrations WHERE file = '1795963000_former_payment_numbers.go'", nil)
			run("PRAGMA foreign_keys = OFF", nil)
			run("INSERT INTO billing_entries (id, claim_control_number, payer_control_number) VALUES ({:id}, {:claim}, 'ICN2')", map[string]any{"id": entry, "claim": claim})
			for _, row := range test.rows {
				part := strings.Split(row, " ")
				key := ""
				if part[3] != "-" {
					key = "835|1123|EFT1|" + part[3] + "L01|1|2000|" + collections.NewUUID()
				}
				run("INSERT INTO payments (id, billing_entry, kind, payer, source, source_key) VALUES ({:id}, {:entry}, {:kind}, {:payer}, {:source}, {:key})",
					map[string]any{"id": collections.NewUUID(), "entry": entry, "kind": part[0], "payer": part[1], "source": part[2], "key": key})
			}
			if err := app.RunAppMigrations(); err != nil {
				t.Fatal(err)
			}
			var got string
			err := app.DB().NewQuery("SELECT group_concat(CASE payer_control_number WHEN '' THEN '-' ELSE payer_control_number END) FROM (SELECT * FROM payments ORDER BY id)").Row(&got)
			if err != nil || got != test.want {
				t.Errorf("numbers %s, %v, want %s", got, err, test.want)
			}
		})
	}
}
