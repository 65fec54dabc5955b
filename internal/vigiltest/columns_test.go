package vigiltest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

)

// outside are the files that name columns or hold SQL though they are not in collections/, and why. An entry whose file needs none is wrong, too.
var outside = map[string]string{}

// storage are the folders that may name columns: storage itself, the schema's history, and what stands beside the service.
var storage = []string{"collections/", "migrations/", "internal/bench/", "internal/sandbox/", "internal/vigiltest/"}

// statement is what SQL begins with, and what it is put together from.
var statement = regexp.MustCompile(`\b(SELECT|INSERT( OR [A-Z]+)? INTO|UPDATE \S+ SET|UPDATE\b.*\bSET|DELETE FROM|ON CONFLICT|EXISTS \(|ORDER BY|GROUP BY|COALESCE\(|\bIN \(|IS NULL|= TRUE|= FALSE)|\{:\w+\}|[!<>=] ?''|\b[a-z_]+ (DESC|ASC)\b`)

// takesColumn are the calls of records, queries and conditions whose texts name columns.
var takesColumn = []string{
	"Get", "GetString", "GetInt", "GetBool", "GetFloat", "GetRaw", "GetStringSlice", "GetDateTime", "UnmarshalJSONField", "Set", "SetRaw", "SetIfFieldExists",
	"GetByName", "FindFirstRecordByData", "Select", "OrderBy", "AndOrderBy", "GroupBy", "From", "NewExp", "In", "NotIn", "Like", "Between", "Equal", "Is", "And",
	"OnCareTeam", "Optional", "TextOf", "Update", "Exists", "storedInstant", "numberIn",
}

// Columns and SQL stand in collections/, where whoever renames a column finds them all.
func TestColumnsStandInCollections(t *testing.T) {
	columns := columnNames(t)
	found := map[string][]string{}
	for name, content := range tree(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			slices.ContainsFunc(storage, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, at := range namesColumns(file, columns) {
			found[name] = append(found[name], fmt.Sprintf("%d: %s", files.Position(at.Pos()).Line, at.Value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, may := outside[name]; !may {
			t.Errorf("%s names columns, which belongs to collections/:\n\t%s", name, strings.Join(found[name], "\n\t"))
		}
	}
	for name, why := range outside {
		if len(found[name]) == 0 {
			t.Errorf("%s names no column: it needs no entry (%s)", name, why)
		}
	}
}

// columnNames are the columns of every table.
func columnNames(t *testing.T) map[string]bool {
	t.Helper()
	app := NewApp(t)
	var names []string
	err := app.DB().NewQuery(`SELECT DISTINCT c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'`).Column(&names)
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]bool{}
	for _, name := range names {
		columns[name] = true
	}
	if !columns["unassigned_at"] {
		t.Fatalf("columns are not read: %d", len(columns))
	}
	return columns
}

// namesColumns are the texts of a file that are SQL, or name a column where one is asked for.
func namesColumns(file *ast.File, columns map[string]bool) (found []*ast.BasicLit) {
	seen := map[token.Pos]bool{}
	add := func(text *ast.BasicLit) {
		if !seen[text.Pos()] {
			seen[text.Pos()] = true
			found = append(found, text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil && strings.Contains(n.Tag.Value, `db:"`) {
				add(n.Tag)
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && statement.MatchString(textOf(n)) {
				add(n)
			}
		case *ast.CallExpr:
			if slices.Contains(takesColumn, called(n.Fun)) {
				for _, argument := range n.Args {
					columnsIn(argument, columns, add)
				}
			}
		case *ast.CompositeLit:
			if kind := called(n.Type); kind == "HashExp" || kind == "Params" {
				columnsIn(n, columns, add)
			}
		}
		return true
	})
	return found
}

// columnsIn adds the texts of an expression that name a column.
func columnsIn(expression ast.Expr, columns map[string]bool, add func(*ast.BasicLit)) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING && columns[textOf(e)] {
			add(e)
		}
	case *ast.CompositeLit: // the keys of a map
		for _, element := range e.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				columnsIn(pair.Key, columns, add)
			}
		}
	case *ast.BinaryExpr:
		columnsIn(e.X, columns, add)
		columnsIn(e.Y, columns, add)
	}
}

// called is the last name of what is called or made.
func called(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func textOf(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

