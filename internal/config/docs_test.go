package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/vigilhealth/vigil/internal/config"
)

// settingRow is a row of the settings tables in docs/operations.md; a dash stands for no default.
var settingRow = regexp.MustCompile("(?m)^\\| `(VIGIL_[A-Z0-9_]+)` \\| (?:`([^`|]+)`|–) \\| [^|]+ \\|$")

// TestDocumentedSettings compares the names and defaults of the settings with docs/operations.md.
func TestDocumentedSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range settingRow.FindAllSubmatch(page, -1) {
		name := string(row[1])
		if _, twice := documented[name]; twice {
			t.Errorf("%s is documented twice", name)
		}
		documented[name] = string(row[2])
	}
	for _, setting := range config.Describe() {
		byDefault, known := documented[setting.Name]
		if !known {
			t.Errorf("%s is not documented", setting.Name)
		} else if byDefault != setting.Default {
			t.Errorf("%s: documented default %q, real one %q", setting.Name, byDefault, setting.Default)
		}
		delete(documented, setting.Name)
	}
	for name := range documented {
		t.Errorf("%s is documented and no setting", name)
	}
}
