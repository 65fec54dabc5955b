package routes_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// grownTables have millions of rows after some years; an endpoint that scans one gets slower every day. Tables that grow
// with the number of patients, not with time, are not listed: a practice summary reads every patient.
var grownTables = []string{
	"observations", "alerts", "transmissions", "transmission_attempts", "audit_log", "billing_entries", "time_entries", "notifications",
	"push_deliveries", "gateway_events", "triage_scores", "reading_days",
}

// wholeByDesign read all rows because their answer covers all of them.
var wholeByDesign = []string{
	"/audit/verify/",           // every entry's hash
	"/billing/claims-exports/", // every claim
}

// counted are exact counts of most or all rows, which lists return. They take as long as the narrowest index, which
// SQLite walks at some ten million rows a second; the pages themselves do not need them.
var counted = []string{
	"SELECT COUNT(*) FROM `push_deliveries` WHERE TRUE",
	"SELECT COUNT(*) FROM `time_entries` WHERE TRUE", "SELECT COUNT(*) FROM `audit_log` WHERE `outcome`=?",
	"SELECT COUNT(*) FROM `audit_log` WHERE `resource_type`=?",
	"SELECT COUNT(*) FROM `billing_entries` WHERE (`lifecycle_status` IN (?, ?, ?, ?, ?, ?, ?, ?, ?)) AND (source = ?)",
	"SELECT COUNT(*) FROM `billing_entries` WHERE (`lifecycle_status` IN (?, ?, ?, ?, ?, ?, ?, ?, ?)) AND (source != ?)",
	"SELECT `id`, `escalation` FROM `alerts` WHERE (?=?) AND (escalation != ?) ORDER BY `id`", // escalations without an alert: nothing is read
}

// Every GET endpoint is called without and with each of its query parameters; SQLite must use an index for every query
// on a table that grows.
func TestNoEndpointScansGrowingTable(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	watch := watchQueries(c)
	shapes, answered := 0, 0
	for _, route := range routes.Rows() {
		if route.Method != http.MethodGet || slices.Contains(wholeByDesign, strings.TrimPrefix(route.Path, "/api/v1")) {
			continue
		}
		path := pathParameter.ReplaceAllString(route.Path, patient)
		for _, query := range queriesOf(document, route.Path, patient) {
			watch.start()
			answer := c.requestWithToken(route.Method, path+query, vigiltest.Token(t, c.people[authz.Admin], c.now))
			if answer.Code == http.StatusOK {
				answered++
			}
			for _, query := range watch.stop() {
				if slices.Contains(counted, literal.ReplaceAllString(query, "?")) {
					continue
				}
				for _, step := range slices.Concat(scans(t, c.app.ConcurrentDB(), query), detours(t, c.app.ConcurrentDB(), query, patient)) {
					t.Errorf("%s: %s\n\tin %s", route.Path, step, query)
				}
				shapes++
			}
		}
	}
	t.Logf("%d answers, %d shapes of queries", answered, shapes)
	if answered < 150 || shapes < 150 {
		t.Errorf("only %d answers and %d shapes of queries were checked", answered, shapes)
	}
}

// queriesOf returns query strings for an endpoint: none, then each parameter alone with each of its enum values or one
// valid value, and each together with a patient if the endpoint accepts one.
func queriesOf(document *openapi3.T, path, patient string) []string {
	queries := []string{""}
	item := document.Paths.Find(path)
	if item == nil || item.Get == nil {
		return queries
	}
	parameters := slices.Concat(item.Parameters, item.Get.Parameters)
	ofPatient := parameters.GetByInAndName("query", "patient_id") != nil
	for _, parameter := range parameters {
		if p := parameter.Value; p.In == "query" {
			for _, value := range valuesOf(p, patient) {
				queries = append(queries, "?"+url.Values{p.Name: {value}}.Encode())
				if ofPatient && p.Name != "patient_id" {
					queries = append(queries, "?"+url.Values{p.Name: {value}, "patient_id": {patient}}.Encode())
				}
			}
		}
	}
	return queries
}

func valuesOf(p *openapi3.Parameter, patient string) (values []string) {
	s := p.Schema.Value
	if s.Items != nil {
		s = s.Items.Value
	}
	for _, word := range s.Enum {
		values = append(values, fmt.Sprint(word))
	}
	switch {
	case len(values) > 0:
		return values
	case strings.Contains(p.Name, "patient") || s.Format == "uuid":
		return []string{patient}
	case s.Type.Is("integer"), s.Type.Is("number"):
		return []string{"1"}
	case s.Type.Is("boolean"):
		return []string{"true", "false"}
	case s.Format == "date-time":
		return []string{"2026-01-02T03:04:05Z"}
	case s.Format == "date", strings.HasSuffix(p.Name, "_date"), strings.Contains(p.Name, "after"), strings.Contains(p.Name, "before"):
		return []string{"2026-01-02"}
	case strings.Contains(p.Name, "month"):
		return []string{"2026-01"}
	case p.Name == "actor":
		return []string{"4", "nurse@vigil.test"}
	}
	return []string{"abc"}
}

// queryWatch collects the app's queries.
type queryWatch struct {
	lock sync.Mutex
	on   bool
	seen map[string]bool // since the start
	new  []string
}

func watchQueries(c *clinic) *queryWatch {
	w := &queryWatch{seen: map[string]bool{}}
	for _, builder := range []dbx.Builder{c.app.ConcurrentDB(), c.app.NonconcurrentDB()} {
		db := builder.(*dbx.DB)
		db.QueryLogFunc = func(_ context.Context, _ time.Duration, query string, _ *sql.Rows, _ error) { w.note(query) }
		db.ExecLogFunc = func(_ context.Context, _ time.Duration, query string, _ sql.Result, _ error) { w.note(query) }
	}
	return w
}

// literal matches what differs between two queries of one shape.
var literal = regexp.MustCompile(`'[^']*'|\b\d+\b`)

func (w *queryWatch) note(query string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if shape := literal.ReplaceAllString(query, "?"); w.on && !w.seen[shape] {
		w.seen[shape] = true
		w.new = append(w.new, query)
	}
}

func (w *queryWatch) start() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.on, w.new = true, nil
}

func (w *queryWatch) stop() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.on = false
	return w.new
}

var (
	explainable = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|UPDATE|DELETE)\b`)
	tableOf     = regexp.MustCompile("(?i)\\b(?:FROM|JOIN|,)\\s*[`\"\\[{]*(\\w+)[`\"\\]}]*(?:\\s+(?:AS\\s+)?[`\"]?(\\w+)[`\"]?)?")
	scanOf      = regexp.MustCompile(`^SCAN (\w+)(.*)$`)
	bounded     = regexp.MustCompile(`(?i)\bLIMIT\s+\+?\d+`)
	counts      = regexp.MustCompile(`(?i)\b(COUNT|SUM|AVG|GROUP BY)\b`)
)

// scans returns the plan steps of a query that scan a growing table. A walk along an index does not count if a limit
// ends it.
func scans(t *testing.T, db dbx.Builder, query string) (found []string) {
	t.Helper()
	if !explainable.MatchString(query) {
		return nil
	}
	names := map[string]string{}
	for _, match := range tableOf.FindAllStringSubmatch(query, -1) {
		names[match[1]] = match[1]
		if match[2] != "" {
			names[match[2]] = match[1]
		}
	}
	for _, step := range stepsOf(t, db, query) {
		scan := scanOf.FindStringSubmatch(step)
		if scan == nil || !slices.Contains(grownTables, names[scan[1]]) || partial(t, db, scan[2]) {
			continue
		}
		inOrder := strings.Contains(scan[2], "USING") || strings.Contains(query, "ORDER BY `_rowid_`") // along an index, or by row id
		if inOrder && bounded.MatchString(query) && !counts.MatchString(query) {
			continue
		}
		found = append(found, step)
	}
	return found
}

// stepsOf returns SQLite's plan for a query.
func stepsOf(t *testing.T, db dbx.Builder, query string) (steps []string) {
	t.Helper()
	var rows []struct {
		Detail string `db:"detail"`
	}
	if err := db.NewQuery("EXPLAIN QUERY PLAN " + strings.ReplaceAll(query, "{:", "{ :")).All(&rows); err != nil {
		t.Errorf("explain %s: %v", query, err)
	}
	for _, row := range rows {
		steps = append(steps, row.Detail)
	}
	return steps
}

// unselectiveStep matches a step that finds rows by a value that a large part of them share, or that skips through every
// value of a column.
var unselectiveStep = regexp.MustCompile(`^SEARCH \w+ USING .*INDEX \w+ \((ANY|(acknowledged|active|listed|level|risk_level|priority|\w*status|type|observation_type|category|source|` +
	`cpt_code|event|payer|rendering_provider)=\?)`)

// detours returns the steps of a query about one patient that do not start with the patient.
func detours(t *testing.T, db dbx.Builder, query, patient string) (found []string) {
	t.Helper()
	if !regexp.MustCompile("\\bpatient`?\\s*=\\s*'" + patient).MatchString(query) {
		return nil
	}
	return unselectiveSearches(t, db, query)
}

func unselectiveSearches(t *testing.T, db dbx.Builder, query string) (found []string) {
	t.Helper()
	if !explainable.MatchString(query) {
		return nil
	}
	for _, step := range stepsOf(t, db, query) {
		if unselectiveStep.MatchString(step) {
			found = append(found, step)
		}
	}
	return found
}

// partial reports whether a step walks a partial index, and so reads only the rows it needs.
func partial(t *testing.T, db dbx.Builder, step string) bool {
	t.Helper()
	words := strings.Fields(step)
	if len(words) == 0 {
		return false
	}
	var n int
	err := db.NewQuery(`SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND name = {:name} AND sql LIKE '% WHERE %'`).
		Bind(dbx.Params{"name": words[len(words)-1]}).Row(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// The cost of a reading does not grow with the practice's data: none of its statements searches by a value that many
// rows share.
func TestReadingsUseSelectiveIndexes(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.assignDevice("BP-1", patient, 20)
	watch := watchQueries(c)
	watch.start()
	for hoursAgo, systolic := range []int{120, 190, 150, 118, 119, 117} {
		c.measure(patient, "BP-1", systolic, 6-hoursAgo)
	}
	shapes := 0
	for _, query := range watch.stop() {
		if !explainable.MatchString(query) {
			continue
		}
		shapes++
		for _, step := range slices.Concat(scans(t, c.app.ConcurrentDB(), query), unselectiveSearches(t, c.app.ConcurrentDB(), query)) {
			t.Errorf("%s\n\tin %s", step, query)
		}
	}
	t.Logf("%d shapes of queries", shapes)
	if shapes < 8 {
		t.Errorf("only %d shapes of queries were checked", shapes)
	}
}
