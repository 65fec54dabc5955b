package routes_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// newDemoClinic is the clinic with demo data that starts at the given time.
func newDemoClinic(t *testing.T, patients int, now time.Time) *clinic {
	t.Helper()
	var money *billing.Engine
	c := newClinic(t, func(e *routes.Engines) { money = e.Billing })
	money.Claims = claims.Loader{
		Practice: claims.Practice{
			Name: "Maple Street Clinic", NPI: "1234567893", TaxID: "123456789", Taxonomy: "207Q00000X", Address: "1 Maple Street", City: "Albany", State: "NY",
			Zip: "122071234", Phone: "5185550100",
		},
		Submitter: claims.Submitter{ID: "DEMO", Contact: "Billing", ReceiverID: "DEMOHOUSE", ReceiverName: "Demo Clearing House", Usage: "T", PlaceOfService: "11"},
	}
	c.now = now
	engine := ingest.NewReadingStore(ingest.Rules{
		PracticeZone: newYork, AutoTransform: true, MaxFuture: 5 * time.Minute, NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2},
	})
	if err := sandbox.Populate(c.app, engine, patients, newYork, now, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.BillMonth(t.Context(), c.app, money, newYork, now); err != nil {
		var f *fault.Error
		errors.As(err, &f)
		t.Fatalf("%v %.1500s", err, fmt.Sprintf("%+v %+v", f.Fields, f.Extra))
	}
	return c
}

// emptyParts lists the empty parts of an answer by path: lists without an item, objects without a member.
func emptyParts(path string, value any) (found []string) {
	switch v := value.(type) {
	case []any:
		if len(v) == 0 {
			return []string{path}
		}
		return emptyParts(path+".0", v[0])
	case object:
		if len(v) == 0 {
			return []string{path}
		}
		for name, member := range v {
			found = append(found, emptyParts(path+"."+name, member)...)
		}
	}
	slices.Sort(found)
	return found
}

// hasFigure reports whether an answer has a figure other than zero.
func hasFigure(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, hasFigure)
	case object:
		for name, member := range v {
			if name != "id" && hasFigure(member) {
				return true
			}
		}
	case float64:
		return v != 0
	}
	return false
}

// No report of the demo is empty, on any day of a month, and all reports agree on the amounts.
func TestDemoLeavesNoReportEmpty(t *testing.T) {
	days := []struct {
		now      time.Time
		patients int
	}{
		{time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC), vigiltest.Rounds(40, 12)},
		{time.Date(2026, 11, 23, 7, 5, 0, 123456789, time.UTC), 12},
		{time.Date(2026, 3, 1, 15, 0, 0, 0, newYork), 12},
		{time.Date(2026, 3, 31, 23, 50, 0, 0, newYork), 12},
		{time.Date(2026, 7, 2, 9, 0, 0, 0, newYork), 12},
	}
	for _, test := range days[:vigiltest.Rounds(len(days), 1)] {
		t.Run(fmt.Sprint(test.now.Format(time.DateOnly), " ", test.patients), func(t *testing.T) {
			c := newDemoClinic(t, test.patients, test.now)
			local := test.now.In(newYork)
			month, before := local.Format("2006-01"), local.AddDate(0, 0, -local.Day()).Format("2006-01")
			range60 := query("date_from", local.AddDate(0, 0, -60).Format(time.DateOnly), "date_to", local.Format(time.DateOnly))
			for _, name := range reports.Names() {
				c.wantComplete(authz.DataMonitor, "/billing/reports/"+string(name)+"/", true)
			}
			for path, figures := range map[string]bool{
				"/reports/billing/stats/": true, "/reports/billing/" + range60: true, "/billing/claim-batches/": true, "/billing/entries/": true,
				"/billing/fee-schedule/": true, "/billing/payers/": false, "/billing/payer-rates/": true, "/billing/self-audit/?month=" + before: true,
				"/billing/preflight/?month=" + before: false, "/time-entries/": true, "/time-entries/summary/?month=" + before: true,
				"/time-entries/summary/?month=" + month: true, "/billing/near-billable/": true,
			} {
				c.wantComplete(authz.Admin, path, figures)
			}
			c.wantEqualAmounts(range60)
			for _, patient := range c.request(authz.Admin, "GET", "/patients/?page_size=100", nil).results() {
				team, _ := c.request(authz.Admin, "GET", fmt.Sprint("/patients/", patient["id"], "/care-team/"), nil).want(200).at("members").([]any)
				if len(team) == 0 {
					t.Errorf("%v has no care team", patient["mrn"])
				}
			}
			if result, err := audit.Verify(c.app, nil); err != nil || !result.Valid {
				t.Errorf("the audit trail: %+v %v", result, err)
			}
		})
	}
}

// mayBeEmpty lists the parts that most items leave empty.
var mayBeEmpty = []string{".warnings", ".errors", ".adjustments", ".modifiers", ".receiver_ids", ".rarc", ".common_denial_reasons", ".time_entry_ids", ".against"}

// wantComplete checks that an answer has no empty part except the permitted ones and, if figures is set, a figure other
// than zero.
func (c *clinic) wantComplete(role authz.Role, path string, figures bool) {
	c.t.Helper()
	answer := c.request(role, "GET", path, nil).want(200)
	for _, part := range emptyParts("", any(answer.object())) {
		if !slices.ContainsFunc(mayBeEmpty, func(suffix string) bool { return strings.HasSuffix(part, ".0"+suffix) }) {
			c.t.Errorf("%s: nothing at %s: %.300s", path, part, answer.body)
		}
	}
	content := answer.object()
	delete(content, "count") // the number of items is not part of their content
	if figures && !hasFigure(content) {
		c.t.Errorf("%s has no figure: %.300s", path, answer.body)
	}
}

// wantEqualAmounts checks that the billed amount equals the sum of its results in every report and over the entries.
func (c *clinic) wantEqualAmounts(between string) {
	c.t.Helper()
	cents := func(value any) int64 {
		amount, _ := value.(float64)
		return int64(math.Round(amount * 100))
	}
	var billed, paid, patients, adjusted int64
	for page := 1; ; page++ {
		answer := c.request(authz.Admin, "GET", fmt.Sprint("/billing/entries/?page_size=100&page=", page), nil)
		entries, _ := answer.want(200).object()["results"].([]any)
		for _, one := range entries {
			entry := one.(object)
			billed, paid, patients = billed+cents(entry["charge"]), paid+cents(entry["paid_total"]), patients+cents(entry["patient_responsibility"])
			for _, a := range entry["adjustments"].([]any) {
				if group := a.(object)["group"]; group != "PR" {
					adjusted += cents(a.(object)["amount"])
				}
			}
		}
		if answer.object()["next"] == nil {
			break
		}
	}
	for _, path := range []string{"/billing/reports/revenue/" + between, "/billing/reports/executive-dashboard/" + between} {
		answer := c.request(authz.Admin, "GET", path, nil).want(200)
		sum := int64(0)
		for _, part := range []string{"paid", "adjusted", "patient_responsibility", "open"} {
			amount := cents(answer.at(part))
			if sum += amount; amount <= 0 {
				c.t.Errorf("%s: %s is %v", path, part, answer.at(part))
			}
		}
		if got := cents(answer.at("billed")); got != sum || got != billed {
			c.t.Errorf("%s: billed %d, of which became %d; the entries have %d", path, got, sum, billed)
		}
		for part, want := range map[string]int64{"paid": paid, "patient_responsibility": patients, "adjusted": adjusted} {
			if got := cents(answer.at(part)); got != want {
				c.t.Errorf("%s: %s %d, the entries have %d", path, part, got, want)
			}
		}
	}
}
