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

// docs/indexes.md names every index of the tables that a reading is written to, and none that is not there.
func TestIndexesAreListed(t *testing.T) {
	page, err := os.ReadFile("../docs/indexes.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			told = append(told, regexp.MustCompile(`idx_\w+`).FindAllString(cells[1], -1)...)
			if strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
				t.Errorf("half a line: %s", line)
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
		if !slices.Contains(told, name) {
			t.Errorf("%s is not listed: say what asks for it, and what it costs", name)
		}
	}
	for i, name := range told {
		if !slices.Contains(there, name) || slices.Contains(told[:i], name) {
			t.Errorf("%s is listed, and is not there or stands twice", name)
		}
	}
}
