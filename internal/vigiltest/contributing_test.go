package vigiltest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/gateway"
)

// change is a row of the table in CONTRIBUTING.md, with an example from the code.
type change struct {
	row string
	// name of the example, in code and in texts
	name string
	// engine is the package that does the work, which the table omits; "" for none
	engine string
	// ofReadings excludes the device adapters: each vendor has its own names, and most vendors send few kinds.
	ofReadings bool
}

var exampleChanges = []change{
	{row: "add a kind of reading", name: "body temperature", ofReadings: true},
	{row: "add a vendor of devices", name: "tenovi"},
	{row: "add an endpoint", name: "simulate thresholds", engine: "internal/alerts/"},
	{row: "add a job", name: "stop timers", engine: "internal/billing/"},
	{row: "add a rule that holds for every write", name: "guard consent", engine: "internal/patients/"},
	{row: "add a setting", name: "escalation time cap", engine: "internal/billing/"},
}

// excludedFolders are folders of test and demo data that name every kind and vendor, or are written once for each change.
var excludedFolders = []string{"tools/bench/", "internal/sandbox/", "internal/vigiltest/", "migrations/"}

var (
	changeRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([0-9]+) \|$`)
	inCode    = regexp.MustCompile("`([^`]+)`")
	blank     = regexp.MustCompile(`<[a-z_]+>`)
)

// CONTRIBUTING.md lists the files that each kind of change touches. The example of each row must be named by exactly as many
// Go files, all within the places that the row lists.
func TestChangesTouchListedFiles(t *testing.T) {
	files := readTree(t)
	rows := map[string][]string{} // by the kind of change: places, and number of files
	for _, row := range changeRow.FindAllSubmatch(files["CONTRIBUTING.md"], -1) {
		rows[string(row[1])] = []string{string(row[2]), string(row[3])}
	}
	for _, c := range exampleChanges {
		row := rows[c.row]
		if row == nil {
			t.Errorf("CONTRIBUTING.md has no row %q", c.row)
			continue
		}
		var places []string
		for _, place := range inCode.FindAllStringSubmatch(row[0], -1) {
			places = append(places, blank.ReplaceAllString(place[1], "*"))
		}
		naming := filesNaming(t, files, c)
		if c.ofReadings {
			naming = slices.DeleteFunc(naming, isAdapter)
		}
		if strconv.Itoa(len(naming)) != row[1] {
			t.Errorf("%s: %q is named by %d files, the table says %s: %v", c.row, c.name, len(naming), row[1], naming)
		}
		for _, name := range naming {
			if !slices.ContainsFunc(places, func(place string) bool { ok, _ := path.Match(place, name); return ok }) {
				t.Errorf("%s: %q is named in %s, which the row does not list", c.row, c.name, name)
			}
		}
	}
}

// isAdapter reports whether a file is a device vendor's adapter.
func isAdapter(file string) bool {
	vendor, _ := strings.CutPrefix(file, "internal/gateway/")
	return slices.Contains(gateway.Vendors(), gateway.Vendor(strings.TrimSuffix(vendor, ".go")))
}

// filesNaming returns the Go files with an identifier or text that contains the name in any spelling: BodyTemperature,
// body_temperature, "Body temperature". Comments are ignored.
func filesNaming(t *testing.T, files map[string][]byte, c change) (naming []string) {
	t.Helper()
	for name, content := range files {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || c.engine != "" && strings.HasPrefix(name, c.engine) ||
			slices.ContainsFunc(excludedFolders, func(folder string) bool { return strings.HasPrefix(name, folder) }) ||
			!strings.Contains(normalizeName(string(content)), normalizeName(c.name)) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.Ident:
				found = found || strings.Contains(normalizeName(node.Name), normalizeName(c.name))
			case *ast.BasicLit:
				found = found || node.Kind == token.STRING && strings.Contains(normalizeName(node.Value), normalizeName(c.name))
			}
			return !found
		})
		if found {
			naming = append(naming, name)
		}
	}
	slices.Sort(naming)
	return naming
}

// normalizeName returns a name in lower case without separators.
func normalizeName(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}
