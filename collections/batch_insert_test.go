package collections_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// SQLite keeps no statement journal for the batch inserts of readings, in spite of the triggers on their tables.
func TestBatchInsertKeepsNoJournal(t *testing.T) {
	app := vigiltest.NewApp(t)
	for _, table := range []string{collections.Transmissions, collections.AuditLog} {
		var columns []string
		if err := app.DB().NewQuery("SELECT name FROM pragma_table_info({:table})").Bind(map[string]any{"table": table}).Column(&columns); err != nil {
			t.Fatal(err)
		}
		texts := collections.NewRowInsert(table, strings.Join(columns, ", "), "").Texts()
		if len(texts) != 3 {
			t.Errorf("%d sizes of groups", len(texts))
		}
		for _, text := range texts {
			vigiltest.WantNoJournal(t, app, text)
		}
	}
}
