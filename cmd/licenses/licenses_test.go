package licenses

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed are the licenses permitted in a program under Apache-2.0: they require attribution only, and do not extend to other code.
var allowed = []string{
	"Apache-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "MIT", "MIT-0", "ISC", "Zlib", "Unlicense", "CC0-1.0", "blessing",
	"OFL-1.1", "Bitstream-Vera", "LicenseRef-Google-Patents", "LicenseRef-PublicDomain",
}

func list(t *testing.T) []Component {
	t.Helper()
	all, err := Components()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 || all[0].Name != "vigil" {
		t.Fatalf("%d components, the first is %v", len(all), all[0])
	}
	return all
}

// mayBeShipped reports whether a license expression permits distribution.
func mayBeShipped(expression string) bool {
	for all := range strings.SplitSeq(expression, " AND ") {
		if !slices.ContainsFunc(strings.Split(strings.Trim(all, "()"), " OR "), func(one string) bool { return slices.Contains(allowed, one) }) {
			return false
		}
	}
	return true
}

func TestLicensesMayBeShipped(t *testing.T) {
	for _, c := range list(t) {
		if !mayBeShipped(c.License) {
			t.Errorf("%s %s is under %q, which is not among those that may be shipped", c.Name, c.Version, c.License)
		}
		if len(c.Texts) == 0 {
			t.Errorf("%s %s has no text of its license", c.Name, c.Version)
		}
		for _, name := range c.Texts {
			if text, err := Text(name); err != nil || len(bytes.TrimSpace(text)) == 0 {
				t.Errorf("%s: text %s is missing (%v)", c.Name, name, err)
			}
		}
	}
}

func TestOtherLicensesMayNotBeShipped(t *testing.T) {
	for expression, may := range map[string]bool{
		"MIT": true, "MIT AND BSD-3-Clause": true, "Apache-2.0 OR MPL-2.0": true, "(MIT OR GPL-2.0) AND BSD-2-Clause": true,
		"GPL-3.0": false, "MIT AND AGPL-3.0": false, "": false, "BUSL-1.1": false,
	} {
		if mayBeShipped(expression) != may {
			t.Errorf("%q may be shipped: %v", expression, !may)
		}
	}
}

// modules returns the modules of the program on a platform, with path and version.
func modules(t *testing.T, system, arch, cgo string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", "sqlite_in_c", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED="+cgo)
	cmd.Stderr = os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(listed)) {
		if line = strings.TrimSpace(line); line != "" {
			found = append(found, line)
		}
	}
	return found
}

// compare compares the listed components of a kind with the shipped ones.
func compare(t *testing.T, kind string, shipped []string) {
	t.Helper()
	var listed []string
	for _, c := range list(t) {
		if c.Kind == kind {
			listed = append(listed, c.Name+" "+c.Version)
		}
	}
	for _, one := range shipped {
		if !slices.Contains(listed, one) {
			t.Errorf("%s is shipped, and its license is not listed: run make licenses", one)
		}
	}
	for _, one := range listed {
		if !slices.Contains(shipped, one) {
			t.Errorf("%s is listed and not shipped: run make licenses", one)
		}
	}
}

func TestEveryModuleIsListed(t *testing.T) {
	var shipped []string
	for _, build := range [][3]string{
		{"linux", "amd64", "0"},
		{"linux", "arm64", "0"},
		{"darwin", "amd64", "0"},
		{"darwin", "arm64", "0"},
		{"windows", "amd64", "0"},
		{"linux", "amd64", "1"},
		{"linux", "arm64", "1"},
	} {
		shipped = append(shipped, modules(t, build[0], build[1], build[2])...)
	}
	slices.Sort(shipped)
	compare(t, "go", slices.Compact(shipped))
}

func TestEveryPackageOfTheConsoleIsListed(t *testing.T) {
	raw, err := os.ReadFile("../../tools/console/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		t.Fatal(err)
	}
	var shipped []string
	for where, one := range lock.Packages {
		if where != "" && !one.Dev {
			shipped = append(shipped, strings.TrimPrefix(where, "node_modules/")+" "+one.Version)
		}
	}
	compare(t, "npm", shipped)
}

// Parts within a module were reviewed for one version of it; another version must be reviewed again.
func TestPartsMatchModuleVersions(t *testing.T) {
	used := modules(t, "linux", "amd64", "0")
	compiler, err := os.ReadFile("../../tools/release/compiler.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list(t) {
		switch c.Kind {
		case "part":
			if !slices.Contains(used, c.Within) {
				t.Errorf("%s was found in %s, which is not used: look at what is in there now, then put cmd/licenses/byhand right", c.Name, c.Within)
			}
		case "compiler":
			if !strings.HasPrefix(string(compiler), c.Within+" ") {
				t.Errorf("%s was found in %s, which releases are not made with: look at what is in there now, then put cmd/licenses/byhand right", c.Name, c.Within)
			}
		case "data":
			if _, err := os.Stat(filepath.Join("../..", c.Within)); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	}
}

// Vigil's own license texts are those at the repository's root.
func TestVigilIsApache(t *testing.T) {
	own := list(t)[0]
	if own.License != "Apache-2.0" || len(own.Texts) != 2 {
		t.Fatalf("Vigil is %+v", own)
	}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		want, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(own.Texts, func(text string) bool { got, err := Text(text); return err == nil && bytes.Equal(got, want) }) {
			t.Errorf("%s is not what the program shows: run make licenses", name)
		}
	}
	var shown bytes.Buffer
	if err := Write(&shown); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"vigil: Apache-2.0", "github.com/pocketbase/pocketbase v0", "preact 10.", "END OF TERMS AND CONDITIONS", "Permission is hereby granted"} {
		if !strings.Contains(shown.String(), part) {
			t.Errorf("what is shown lacks %q", part)
		}
	}
}
