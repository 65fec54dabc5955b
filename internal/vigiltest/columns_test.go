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
var outside = map[string]string{
	"internal/backup/create.go":              "counts what is in a copy of the database, without the app",
	"internal/backup/restore.go":             "changes a copy of the database, without the app",
	"internal/billing/reports/claims.go":     report,
	"internal/billing/reports/people.go":     report,
	"internal/billing/reports/rates.go":      report,
	"internal/billing/reports/statistics.go": report,
	"internal/billing/reports/tasks.go":      report,
	"internal/billing/sums.go":               "measured hot path: a sum is put together from kept sums, and recounted from the same text over the entries (BenchmarkReports)",
	"internal/dashboard/feed.go":             "measured hot path: one branch for each kind of the feed, put together from the table of kinds (BenchmarkFeed)",
	"internal/rotation/rotation.go":          "walks every sealed column of every collection by what the schema says; the one column it names is the id",
	"internal/rules/put_right.go":            "PocketBase's own table of collections, not one of ours",
	"internal/sqlite/copy.go":                "SQLite's own table: whether a copy can be read",
	"internal/alerts/act.go":                 moving,
	"internal/alerts/change.go":              moving,
	"internal/alerts/change_log.go":          moving,
	"internal/alerts/keep.go":                moving,
	"internal/alerts/keep_thresholds.go":     moving,
	"internal/alerts/list.go":                moving,
	"internal/alerts/resolve_about.go":       moving,
	"internal/alerts/resolve_open.go":        moving,
	"internal/alerts/simulate.go":            moving,
	"internal/alerts/snoozes.go":             moving,
	"internal/alerts/store.go":               moving,
	"internal/alerts/trail.go":               moving,
	"internal/devices/stale.go":              moving,
	"internal/escalations/announce.go":       moving,
	"internal/escalations/assignee.go":       moving,
	"internal/escalations/escalations.go":    moving,
	"internal/escalations/follow_ups.go":     moving,
	"internal/escalations/keep.go":           moving,
	"internal/escalations/list.go":           moving,
	"internal/escalations/overdue.go":        moving,
	"internal/escalations/update.go":         moving,
	"internal/observations/adopt.go":         moving,
	"internal/observations/batch.go":         moving,
	"internal/observations/days.go":          moving,
	"internal/observations/ingest.go":        moving,
	"internal/observations/kept.go":          moving,
	"internal/observations/list.go":          moving,
	"internal/observations/numbers.go":       moving,
	"internal/observations/observation.go":   moving,
	"internal/observations/place.go":         moving,
	"internal/observations/quarantine.go":    moving,
	"internal/observations/recount.go":       moving,
	"internal/observations/replay.go":        moving,
	"internal/observations/timing.go":        moving,
	"internal/observations/withdraw.go":      moving,
	"internal/triage/alerts.go":              moving,
	"internal/triage/cancel_open.go":         moving,
	"internal/triage/escalations.go":         moving,
	"internal/triage/list.go":                moving,
	"internal/triage/picture.go":             moving,
	"internal/triage/relearn.go":             moving,
	"internal/triage/rescore.go":             moving,
	"internal/triage/row.go":                 moving,
	"internal/triage/standing.go":            moving,
	"internal/triage/stats.go":               moving,
	"internal/triage/system.go":              moving,
	"internal/triage/thresholds.go":          moving,
	"internal/triage/trends.go":              moving,
	"internal/triage/weighings.go":           moving,
	"routes/alerts.go":                       moving,
	"routes/escalations.go":                  moving,
	"routes/observation_view.go":             moving,
	"routes/snoozes.go":                      moving,
}

const moving = "being moved"

const report = "measured hot path: a report is put together from its filters and the index that holds its answer (BenchmarkReports)"

// storage are the folders that may name columns: storage itself, the schema's history, and what stands beside the service.
var storage = []string{"collections/", "migrations/", "internal/bench/", "internal/sandbox/", "internal/vigiltest/"}

// statement is what SQL begins with, and what it is put together from.
var statement = regexp.MustCompile(`\b(SELECT|INSERT( OR [A-Z]+)? INTO|UPDATE \S+ SET|UPDATE\b.*\bSET|DELETE FROM|ON CONFLICT|EXISTS \(|ORDER BY|GROUP BY|COALESCE\(|\bIN \(|IS NULL|= TRUE|= FALSE)|\{:\w+\}|[!<>=] ?''|\b[a-z_]+ (DESC|ASC)\b`)

// takesColumn are the calls of records, queries and conditions whose texts name columns.
var takesColumn = []string{
	"Get", "GetString", "GetInt", "GetBool", "GetFloat", "GetRaw", "GetStringSlice", "GetDateTime", "UnmarshalJSONField", "Set", "SetRaw", "SetIfFieldExists",
	"GetByName", "FindFirstRecordByData", "Select", "OrderBy", "AndOrderBy", "GroupBy", "From", "NewExp", "In", "NotIn", "Like", "Between", "Equal", "Is", "And",
	"OnCareTeam", "Optional", "TextOf", "Load", "Update", "Exists", "storedInstant", "numberIn",
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
			if slices.Contains(takesColumn, called(n.Fun)) && !ofAddress(n.Fun) {
				for _, argument := range n.Args {
					columnsIn(argument, columns, add)
				}
			}
		case *ast.RangeStmt: // what is set column by column
			if setsKey(n) {
				columnsIn(n.X, columns, add)
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

// setsKey reports whether a loop sets, or reads, what its key names.
func setsKey(loop *ast.RangeStmt) (sets bool) {
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && len(call.Args) > 0 && slices.Contains(takesColumn, called(call.Fun)) && !ofAddress(call.Fun) {
			sets = sets || loop.Key != nil && called(call.Args[0]) == called(loop.Key)
		}
		return !sets
	})
	return sets
}

// ofAddress reports whether a call asks the query of an address, whose names are the contract's.
func ofAddress(call ast.Expr) bool {
	selector, ok := call.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"query", "values"}, called(selector.X))
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
