package collections_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// What is written to see whether a reading would be taken needs as much room as it is asked for. Source: docs/decisions/dashboard.md, "Health body".
func TestProveWriting(t *testing.T) {
	app := vigiltest.NewApp(t)
	var page int64
	if err := app.DB().NewQuery("PRAGMA page_size").Row(&page); err != nil {
		t.Fatal(err)
	}
	frames := func(pages int) int64 {
		if _, err := app.NonconcurrentDB().NewQuery("PRAGMA wal_checkpoint(TRUNCATE)").Execute(); err != nil {
			t.Fatal(err)
		}
		if err := collections.ProveWriting(t.Context(), app, pages); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(app.DataDir(), "data.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size() / page
	}
	for _, pages := range []int{1, 64} {
		if took := frames(pages); took < int64(pages) || took >= int64(2*pages+2) {
			t.Errorf("%d pages take the room of %d", pages, took)
		}
	}
}
