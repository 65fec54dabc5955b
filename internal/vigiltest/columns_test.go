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

// columnExceptions lists the files that name columns or contain SQL outside collections/, with the reason. An entry that is not
// needed is an error.
var columnExceptions = map[string]string{
	"internal/backup/create.go":                         "counts the rows of a database copy, without the app",
	"internal/backup/restore.go":                        "changes a database copy, without the app",
	"internal/billing/reports/aging.go":                 report,
	"internal/billing/reports/claims_status.go":         report,
	"internal/billing/reports/executive_dashboard.go":   report,
	"internal/billing/reports/patient_summary.go":       report,
	"internal/billing/reports/payer_performance.go":     report,
	"internal/billing/reports/provider_productivity.go": report,
	"internal/billing/reports/statistics.go":            report,
	"internal/billing/reports/tasks.go":                 report,
	"internal/billing/totals.go":                        "measured hot path: totals are composed from stored totals, and recounted over the entries with the same SQL (BenchmarkReports)",
	"internal/dashboard/feed.go":                        "measured hot path: one branch for each kind of the feed, composed from the table of kinds (BenchmarkFeed)",
	"internal/phi/keyring/rotation.go":                  "finds the sealed columns of all collections in the schema; the only column it names is the id",
	"hooks/schemadrift/restore.go":                      "PocketBase's own table of collections",
	"internal/sqlite/copy.go":                           "SQLite's own table, to check that a copy is readable",
	"internal/alerts/store.go":                          reading,
	"internal/escalations/join_or_open.go":              reading,
	"internal/ingest/dedupe.go":                         reading,
	"internal/ingest/match_patient.go":                  reading,
	"internal/ingest/observation.go":                    reading,
	"internal/triage/triage_row.go":                     reading,
	"internal/triage/patient_snapshot.go":               ranked,
	"internal/triage/rescore_all.go":                    ranked,
	"internal/triage/baseline.go":                       ranked,
	"internal/triage/list.go":                           triaged,
	"internal/triage/trends.go":                         triaged,
	"internal/triage/row_details.go":                    triaged,
}

const (
	reading = "measured hot path: the SQL that stores one reading is next to its code (BenchmarkWriter)"
	ranked  = "measured hot path: the patient snapshot after each reading is composed from the table of parameters (BenchmarkCrowd)"
	triaged = "measured hot path: a page of the triage list is one statement over its table (BenchmarkListFirstPage)"
	report  = "measured hot path: a report is composed from its filters and its covering index (BenchmarkReports)"
)

// storageFolders are the folders that may name columns: the storage layer, migrations, and tools outside the service.
var storageFolders = []string{"collections/", "migrations/", "tools/bench/", "tools/wordlint/", "internal/sandbox/", "internal/vigiltest/"}

// sqlPattern matches text that begins or composes SQL.
var sqlPattern = regexp.MustCompile(`\b(SELECT|INSERT( OR [A-Z]+)? INTO|UPDATE \S+ SET|UPDATE\b.*\bSET|DELETE FROM|ON CONFLICT|EXISTS \(|ORDER BY|GROUP BY|COALESCE\(|\bIN \(|IS NULL|= TRUE|= FALSE)|\{:\w+\}|[!<>=] ?''|\b[a-z_]+ (DESC|ASC)\b`)

// columnMethods are the methods of records, queries and conditions that take column names.
var columnMethods = []string{
	"Get", "GetString", "GetInt", "GetBool", "GetFloat", "GetRaw", "GetStringSlice", "GetDateTime", "UnmarshalJSONField", "Set", "SetRaw", "SetIfFieldExists",
	"GetByName", "FindFirstRecordByData", "Select", "OrderBy", "AndOrderBy", "GroupBy", "From", "NewExp", "In", "NotIn", "Like", "Between", "Equal", "Is", "And",
	"OnCareTeam", "Optional", "TextOf", "Load", "Update", "Exists", "storedInstant", "numberIn",
}

// Columns and SQL belong in collections/, so that a renamed column has one place to change.
func TestColumnsOnlyInCollections(t *testing.T) {
	columns := columnNames(t)
	found := map[string][]string{}
	for name, content := range readTree(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			slices.ContainsFunc(storageFolders, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, at := range findColumnTexts(file, columns) {
			found[name] = append(found[name], fmt.Sprintf("%d: %s", files.Position(at.Pos()).Line, at.Value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, may := columnExceptions[name]; !may {
			t.Errorf("%s names columns, which belongs to collections/:\n\t%s", name, strings.Join(found[name], "\n\t"))
		}
	}
	for name, why := range columnExceptions {
		if len(found[name]) == 0 {
			t.Errorf("%s names no column: remove its entry (%s)", name, why)
		}
	}
}

// Every planted column or SQL text is found, and no other.
func TestFindColumnTexts(t *testing.T) {
	columns := map[string]bool{"patient": true, "status": true, "day": true}
	for source, want := range map[string][]string{
		`record.GetString("patient")`:                 {`"patient"`},
		`record.Set("status", "patient")`:             {`"status"`, `"patient"`},
		`app.DB().Select("day", "other").From(table)`: {`"day"`},
		`dbx.HashExp{"patient": "status"}`:            {`"patient"`},
		`dbx.Params{"day": 1}`:                        {`"day"`},
		`for column, value := range map[string]any{"status": 1} { record.Set(column, value) }`: {`"status"`},
		`tx.DB().NewQuery("DELETE FROM patients")`:                                             {`"DELETE FROM patients"`},
		"app.DB().NewQuery(`SELECT 1`)":                                                        {"`SELECT 1`"},
		`order := "day DESC"`:                                                                  {`"day DESC"`},
		`where.And("COALESCE(day, '') != ''")`:                                                 {`"COALESCE(day, '') != ''"`},
		"var row struct { Day string `db:\"day\"` }":                                           {"`db:\"day\"`"},
		// Not columns: a column's constant, a URL parameter, a key of a body, a sentence.
		`record.GetString(collections.ColumnPatient)`:                              nil,
		`query.Get("patient")`:                                                     nil,
		`view := map[string]any{"patient": 1}`:                                     nil,
		`for key, value := range map[string]any{"status": 1} { show(key, value) }`: nil,
		`fault.Field("status", "Select a day.")`:                                   nil,
		"var row struct { Day string `json:\"day\"` }":                             nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "planted.go", "package planted\nfunc f() {\n"+source+"\n}", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, at := range findColumnTexts(file, columns) {
			found = append(found, at.Value)
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s: found %q, want %q", source, found, want)
		}
	}
}

// columnNames returns the columns of every table.
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
		t.Fatalf("found only %d columns", len(columns))
	}
	return columns
}

// findColumnTexts returns a file's texts that are SQL, or that name a column where one is expected.
func findColumnTexts(file *ast.File, columns map[string]bool) (found []*ast.BasicLit) {
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
			if n.Kind == token.STRING && sqlPattern.MatchString(textOf(n)) {
				add(n)
			}
		case *ast.CallExpr:
			if slices.Contains(columnMethods, lastName(n.Fun)) && !readsURLQuery(n.Fun) {
				for _, argument := range n.Args {
					columnsIn(argument, columns, add)
				}
			}
		case *ast.RangeStmt: // columns set in a loop
			if setsKey(n) {
				columnsIn(n.X, columns, add)
			}
		case *ast.CompositeLit:
			if kind := lastName(n.Type); kind == "HashExp" || kind == "Params" {
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
	case *ast.CompositeLit: // keys of a map
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

// setsKey reports whether a loop sets or reads the column named by its key.
func setsKey(loop *ast.RangeStmt) (sets bool) {
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && len(call.Args) > 0 && slices.Contains(columnMethods, lastName(call.Fun)) && !readsURLQuery(call.Fun) {
			sets = sets || loop.Key != nil && lastName(call.Args[0]) == lastName(loop.Key)
		}
		return !sets
	})
	return sets
}

// readsURLQuery reports whether a call reads a URL query, whose names belong to the API.
func readsURLQuery(call ast.Expr) bool {
	selector, ok := call.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"query", "values"}, lastName(selector.X))
}

// lastName returns the last name of a called function or composed type.
func lastName(expression ast.Expr) string {
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
