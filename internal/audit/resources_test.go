package audit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// resources reads the names of this package's list.
func resources(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "resources.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			name, _ := strconv.Unquote(literal.Value)
			names = append(names, name)
		}
		return true
	})
	return names
}

// Other words that read the same: FHIR's resources, people's roles, and what people are told.
var otherWords = []string{
	"internal/authz/", "internal/audit/", "tools/bench/", "internal/emr/", "internal/fhirserver/", "internal/fhir/", "internal/fhirserver/",
	"internal/sandbox/", "internal/vigiltest/", "internal/warehouse/resources.go", "internal/notifications/kinds.go", "routes/emr.go",
}

// Who writes an entry and who goes by it must mean the same name, so that nobody spells one.
func TestNobodySpellsAResource(t *testing.T) {
	names := resources(t)
	if !slices.Contains(names, "Patient") || !slices.IsSorted(names) {
		t.Fatalf("the list holds %q", names)
	}
	house := os.DirFS("../..")
	for _, folder := range []string{"cmd", "hooks", "internal", "jobs", "routes"} {
		err := fs.WalkDir(house, folder, func(file string, _ fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") ||
				slices.ContainsFunc(otherWords, func(begin string) bool { return strings.HasPrefix(file, begin) }) {
				return err
			}
			text, err := fs.ReadFile(house, file)
			if err != nil {
				return err
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if name, _ := strconv.Unquote(literal.Value); slices.Contains(names, name) {
						t.Errorf("%s: %s is to be audit.Resource%s", files.Position(literal.Pos()), literal.Value, name)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
