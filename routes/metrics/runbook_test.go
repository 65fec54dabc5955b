package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The runbook VigilReadingsRefused covers exactly the rejection reasons of the metric.
func TestRunbookCoversRejectionReasons(t *testing.T) {
	text, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## VigilReadingsRefused\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for _, found := range regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`").FindAllStringSubmatch(section, -1) {
		named = append(named, found[1])
	}
	slices.Sort(named)
	want := slices.Sorted(slices.Values(rejectionReasons))
	if !slices.Equal(named, want) {
		t.Errorf("the runbook names\n%v\nand the metric has\n%v", named, want)
	}
}
