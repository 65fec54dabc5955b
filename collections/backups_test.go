package collections_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A write probe uses at least as many journal pages as requested. Source: docs/decisions/dashboard.md, "Health body".
func TestProbeWrite(t *testing.T) {
	app := vigiltest.NewApp(t)
	var page int64
	if err := app.DB().NewQuery("PRAGMA page_size").Row(&page); err != nil {
		t.Fatal(err)
	}
	frames := func(pages int) int64 {
		if _, err := app.NonconcurrentDB().NewQuery("PRAGMA wal_checkpoint(TRUNCATE)").Execute(); err != nil {
			t.Fatal(err)
		}
		if err := collections.ProbeWrite(t.Context(), app, pages); err != nil {
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
			t.Errorf("a probe of %d pages uses %d", pages, took)
		}
	}
}
