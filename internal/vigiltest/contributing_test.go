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

// change is a kind of change that CONTRIBUTING.md has a row for, shown by one that was made.
type change struct {
	row string
	// name is what the example is called, in code and in texts alike.
	name string
	// engine is where the work itself is done, which the table leaves out; "" for none.
	engine string
	// ofReadings leaves out the adapters: what a vendor calls a kind is the vendor's, and most vendors send few kinds.
	ofReadings bool
}

var changes = []change{
	{row: "add a kind of reading", name: "body temperature", ofReadings: true},
	{row: "add a vendor of devices", name: "tenovi"},
	{row: "add an endpoint", name: "simulate thresholds", engine: "internal/alerts/"},
	{row: "add a job", name: "stop timers", engine: "internal/billing/"},
	{row: "add a rule that holds for every write", name: "guard rate", engine: "internal/billing/"},
	{row: "add a setting", name: "escalation time cap", engine: "internal/billing/"},
}

// uncounted are made-up worlds that know every kind and vendor, and what is written once for each change.
var uncounted = []string{"tools/bench/", "internal/sandbox/", "internal/vigiltest/", "migrations/"}

var (
	changeRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([0-9]+) \|$`)
	inCode    = regexp.MustCompile("`([^`]+)`")
	blank     = regexp.MustCompile(`<[a-z_]+>`)
)

// CONTRIBUTING.md says for each kind of change which files it touches. An example of each names exactly as many Go files, all of them in
// the places that the row names.
func TestAChangeHasOneRoom(t *testing.T) {
	files := tree(t)
	rows := map[string][]string{} // by what somebody wants: where, and how many
	for _, row := range changeRow.FindAllSubmatch(files["CONTRIBUTING.md"], -1) {
		rows[string(row[1])] = []string{string(row[2]), string(row[3])}
	}
	for _, c := range changes {
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
				t.Errorf("%s: %q stands in %s, which the row does not name", c.row, c.name, name)
			}
		}
	}
}

// isAdapter reports whether a file is the adapter of a vendor of devices.
func isAdapter(file string) bool {
	vendor, _ := strings.CutPrefix(file, "internal/gateway/")
	return slices.Contains(gateway.Vendors(), gateway.Vendor(strings.TrimSuffix(vendor, ".go")))
}

// filesNaming are the Go files with an identifier or a text that holds the name, however it is spelled: BodyTemperature, body_temperature,
// "Body temperature". Comments may name what they like.
func filesNaming(t *testing.T, files map[string][]byte, c change) (naming []string) {
	t.Helper()
	for name, content := range files {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || c.engine != "" && strings.HasPrefix(name, c.engine) ||
			slices.ContainsFunc(uncounted, func(folder string) bool { return strings.HasPrefix(name, folder) }) ||
			!strings.Contains(plain(string(content)), plain(c.name)) {
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
				found = found || strings.Contains(plain(node.Name), plain(c.name))
			case *ast.BasicLit:
				found = found || node.Kind == token.STRING && strings.Contains(plain(node.Value), plain(c.name))
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

// plain is a name without the marks of its spelling.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}
