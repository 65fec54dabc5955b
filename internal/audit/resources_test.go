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

// resourceTypes returns the resource types in resources.go.
func resourceTypes(t *testing.T) (names []string) {
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

// excludedPaths are paths in which the same words mean something else: FHIR resources, roles, notification kinds.
var excludedPaths = []string{
	"internal/authz/", "internal/audit/", "tools/bench/", "internal/emr/", "internal/emrcontext/", "internal/fhir/", "internal/fhirserver/",
	"internal/sandbox/", "internal/vigiltest/", "internal/warehouse/resources.go", "internal/notifications/kinds.go", "internal/notifications/types.go", "routes/emr.go",
}

// Code that writes or reads entries must use the constants, so that both use the same name.
func TestResourceTypesUseConstants(t *testing.T) {
	names := resourceTypes(t)
	if !slices.Contains(names, "Patient") || !slices.IsSorted(names) {
		t.Fatalf("resource types %q", names)
	}
	root := os.DirFS("../..")
	for _, folder := range []string{"cmd", "hooks", "internal", "jobs", "routes"} {
		err := fs.WalkDir(root, folder, func(file string, _ fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") ||
				slices.ContainsFunc(excludedPaths, func(begin string) bool { return strings.HasPrefix(file, begin) }) {
				return err
			}
			text, err := fs.ReadFile(root, file)
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
						t.Errorf("%s: replace %s by audit.Resource%s", files.Position(literal.Pos()), literal.Value, name)
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
