package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/vigilhealth/vigil/internal/config"
)

// TestClinicalPageHasTheDefaults checks the defaults that docs/clinical.md names.
func TestClinicalPageHasTheDefaults(t *testing.T) {
	raw, err := os.ReadFile("../../docs/clinical.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, setting := range config.Describe() {
		defaults[setting.Name] = setting.Default
	}
	known := 0
	for _, found := range regexp.MustCompile("`(VIGIL_[A-Z0-9_]+)`(?:, ([0-9]+[a-z]*))?").FindAllSubmatch(raw, -1) {
		name, documented := string(found[1]), string(found[2])
		byDefault, exists := defaults[name]
		if !exists {
			t.Errorf("the page names %s, which is no setting", name)
		}
		known++
		if documented != "" && documented != byDefault {
			t.Errorf("%s: the page says %s, the program %s", name, documented, byDefault)
		}
	}
	if known < 3 {
		t.Errorf("the page names %d settings", known)
	}
}
