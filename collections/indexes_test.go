package collections_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// docs/indexes.md lists every index of the tables on the path of a reading, and no other.
func TestIndexesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/indexes.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			listed = append(listed, regexp.MustCompile(`idx_\w+`).FindAllString(cells[1], -1)...)
			if strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
				t.Errorf("incomplete line: %s", line)
			}
		}
	}
	var there []string
	tables := []string{collections.Observations, collections.Transmissions, collections.AuditLog, collections.TriageScores, collections.Alerts, collections.Escalations, collections.Devices}
	for _, table := range tables {
		var names []string
		if err := vigiltest.NewApp(t).DB().NewQuery("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = {:table}").
			Bind(map[string]any{"table": table}).Column(&names); err != nil {
			t.Fatal(err)
		}
		there = append(there, names...)
	}
	for _, name := range there {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is not listed: add the queries that use it and its cost", name)
		}
	}
	for i, name := range listed {
		if !slices.Contains(there, name) || slices.Contains(listed[:i], name) {
			t.Errorf("%s is listed, but does not exist or is listed twice", name)
		}
	}
}
