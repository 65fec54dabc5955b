package alerts_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// The page that a clinician signs states the program's bounds of each parameter, in both tables.
func TestClinicalPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/clinical.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	shown := func(bound *float64) string {
		if bound == nil {
			return "–"
		}
		return strconv.FormatFloat(*bound, 'f', -1, 64)
	}
	for _, p := range vitals.ThresholdParameters {
		if p.Change != nil {
			if words := shown(&p.Change.DefaultThreshold) + " kg in " + strconv.Itoa(p.Change.DefaultWindow) + " days"; !strings.Contains(page, words) {
				t.Errorf("the page does not state %q", words)
			}
			continue
		}
		label := strings.ToLower(p.Label)
		if p.Label == "SpO2" {
			label = p.Label
		}
		unit := p.Range.Unit
		row := "| " + label + ", " + unit + " |"
		at := strings.Index(page, "\n"+row)
		if at < 0 {
			t.Errorf("the page has no row %q", row)
			continue
		}
		cells := strings.Split(strings.SplitN(page[at+1:], "\n", 2)[0], "|")
		for i, bound := range []*float64{p.Defaults.CriticalLow, p.Defaults.Low, p.Defaults.High, p.Defaults.Critical} {
			if got := strings.TrimSpace(cells[i+2]); got != shown(bound) {
				t.Errorf("%s: the page states %s, the program %s", p.Label, got, shown(bound))
			}
		}
	}
	if !strings.Contains(page, "## Signed") {
		t.Error("the page has no place for a signature")
	}
}
