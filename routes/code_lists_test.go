package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
)

// Diagnoses that the list of the date of service lacks, headings, and an external cause in first place stop a claim.
func TestDiagnosesOfTheYear(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 20, nil)
	entry := h.reviewed()[id+" 99457"]
	for _, test := range []struct {
		codes []string
		want  string
	}{
		{[]string{"I10", "V00.01XA"}, "true []"},
		{[]string{"E11"}, "false [unknown_icd10]"},
		{[]string{"I10", "E88.81"}, "false [unknown_icd10]"},
		{[]string{"N18.3"}, "false [unknown_icd10]"},
		{[]string{"Z99.99"}, "false [unknown_icd10]"},
		{[]string{"V00.01XA", "I10"}, "false [external_cause_principal]"},
	} {
		if _, err := h.app.NonconcurrentDB().NewQuery("UPDATE billing_entries SET icd10_codes = {:codes} WHERE id = {:id}").
			Bind(map[string]any{"id": entry, "codes": strings.ReplaceAll(fmt.Sprintf("%q", test.codes), " ", ",")}).Execute(); err != nil {
			t.Fatal(err)
		}
		r := h.request(authz.DataMonitor, "GET", "/billing/entries/"+entry+"/preflight/", nil).want(200)
		codes := []string{}
		for _, e := range r.at("errors").([]any) {
			codes = append(codes, e.(object)["code"].(string))
		}
		if got := fmt.Sprint(r.at("ok"), " ", codes); got != test.want {
			t.Errorf("%v: %s, want %s", test.codes, got, test.want)
		}
	}
}

// From November the next year's final list of fees is a task; a proposed list does not complete it, and sets no amount.
func TestFeeListOfTheYear(t *testing.T) {
	c := newClinic(t)
	missing := func(what string, fees, codes float64) {
		t.Helper()
		c.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/?refresh=true", nil).want(200).wantAt(object{"missing_fee_list": fees, "missing_code_list": codes})
	}
	missing("no lists at all", 0, 0)
	c.importFees(feeHeader + "99454,,2025-01-01,,43,CMS\n").want(200)
	missing("only last year's", 1, 0)
	if err := billing.StoreBundledFees(c.app, c.now); err != nil {
		t.Fatal(err)
	}
	missing("this year's", 0, 0)
	for _, row := range c.request(authz.Admin, "GET", "/billing/fee-schedule/?page_size=100", nil).want(200).results() {
		want := object{"year": 2026.0, "status": "final", "shipped": true}
		if row["effective_date"] == "2025-01-01" {
			want = object{"year": 2025.0, "status": "final", "shipped": false}
		}
		wantMembers(t, "row", row, want)
	}
	entry := c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
		"patient_id": c.billablePatient(), "cpt_code": "99457", "service_date": "2026-01-14", "duration_minutes": 20,
	}).want(201)
	entry.wantAt(object{"amount": 47.87, "expected": 47.87, "charge": 51.77})

	c.importFees(feeHeader + "99457,,2027-01-01,80,,Practice\n99457,,2027-01-01,,53,CMS\n").wantFields("row 3.cpt_code")
	c.importFees(feeHeader + "99457,,2027-01-01,,53,CMS\n").wantFields("row 2.status") // it is not published yet
	c.now = c.now.AddDate(0, 10, 0)
	missing("November", 1, 1)
	header := "cpt_code,locality,effective_date,charge,expected,source,status\n"
	for _, factor := range []string{"99454,,2027-01-01,,51.23,CMS,final\n99457,,2027-01-01,,50.9,CMS,final\n", "99454,,2027-01-01,,51.74,CMS,final\n99457,,2027-01-01,,51.41,CMS,final\n"} {
		c.importFees(header+factor).wantFields("row 2.status", "row 3.status")
		c.importFees(feeHeader+strings.ReplaceAll(factor, ",final", "")).wantFields("row 2.status", "row 3.status")
	}
	for _, source := range []string{"CY 2027 Proposed Rule", "1.6 RVU x 32.8409", "33.1693"} {
		c.importFees(header + "99457,,2027-01-01,,53," + source + ",final\n").wantFields("row 2.status")
	}
	missing("nothing imported", 1, 1)
	c.importFees(header + "99457,,2027-01-01,,53,CMS,maybe\n").wantFields("row 2.status")
	c.importFees(header + "99457,,2027-01-01,,53,CMS,proposed\n99457,,2026-11-01,,99,CMS,proposed\n").want(200)
	missing("proposed", 1, 1)
	if row := c.request(authz.Admin, "GET", "/billing/fee-schedule/?page_size=100", nil).want(200).results(); !hasRow(row, object{"year": 2027.0, "status": "proposed"}) {
		t.Errorf("the rows are %v", row)
	}
	c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
		"patient_id": c.billablePatient(), "cpt_code": "99457", "service_date": "2026-11-14", "duration_minutes": 20,
	}).want(201).wantAt(object{"amount": 47.87})
	c.importFees(feeHeader + "99457,13,2027-01-01,,53,CMS\n").want(200)
	missing("of another locality", 1, 1)
	c.importFees(feeHeader + "99457,,2027-01-01,,53,CMS\n").want(200).wantAt(object{"replaced": 1.0})
	missing("one code", 1, 1)
	codes := []any{"99453", "99454", "99458", "99091"}
	if got := c.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/?refresh=true", nil).want(200).at("missing_fee_codes"); fmt.Sprint(got) != fmt.Sprint(codes) {
		t.Errorf("the codes without a fee are %v", got)
	}
	rows := ""
	for _, code := range codes {
		rows += code.(string) + ",,2027-01-01,,50,CMS\n"
	}
	c.importFees(feeHeader + rows).want(200)
	missing("final", 0, 1)
}

// The rules of each year are listed with their sources and with what they change; from November those of the next year are a task.
func TestRulesOfTheYears(t *testing.T) {
	c := newClinic(t)
	years := c.request(authz.DataMonitor, "GET", "/billing/rules/", nil).want(200).results()
	if len(years) != 2 || years[0]["year"] != 2025.0 || years[1]["year"] != 2026.0 || len(years[0]["codes"].([]any)) != 5 || len(years[1]["codes"].([]any)) != 7 {
		t.Fatalf("the years are %v", years)
	}
	hasTwoDays := false
	for _, change := range years[1]["changes"].([]any) {
		row := change.(object)
		hasTwoDays = hasTwoDays || row["item"] == "99445 min_days" && row["before"] == nil && row["after"] == "2"
	}
	if !hasTwoDays {
		t.Errorf("2026 changes %v", years[1]["changes"])
	}
	c.request(authz.Nurse, "GET", "/billing/rules/", nil).want(403)
	tasks := func(want float64) {
		t.Helper()
		c.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/?refresh=true", nil).want(200).wantAt(object{"missing_rules": want})
	}
	tasks(0)
	c.now = c.now.AddDate(0, 10, 0) // November 2026
	tasks(1)
}

// A proposed fee does not replace a final one, the shipped ones included, and lists of years without fees are refused, by the preview too.
func TestFeeListsRefused(t *testing.T) {
	c := newClinic(t)
	if err := billing.StoreBundledFees(c.app, c.now); err != nil {
		t.Fatal(err)
	}
	c.importFees(feeHeader + "99457,,2025-01-01,,48,CMS\n").want(200)
	header := "cpt_code,locality,effective_date,charge,expected,source,status\n"
	for row, field := range map[string]string{
		"99457,,2025-01-01,,53,CMS,proposed": "row 2.status", "99457,,2026-01-01,,53,CMS,proposed": "row 2.status", "99457,,1997-01-01,,53,CMS,final": "row 2.effective_date",
		"99457,,2127-01-01,80,,Practice,final": "row 2.effective_date", "99457,,2028-01-01,,53,CMS,proposed": "row 2.effective_date",
	} {
		c.importFees(header + row + "\n").wantFields(field)
		c.request(authz.Admin, "POST", "/billing/fee-schedule/import/?preview=true", header+row+"\n", "Content-Type", "text/csv").wantFields(field)
	}
	rows := c.request(authz.Admin, "GET", "/billing/fee-schedule/?page_size=100", nil).want(200).results()
	if !hasRow(rows, object{"effective_date": "2025-01-01", "status": "final", "expected": 48.0}) || hasRow(rows, object{"status": "proposed"}) {
		t.Errorf("the rows are %v", rows)
	}
	for _, step := range []string{"?preview=true", ""} { // the preview counts what the import does
		c.request(authz.Admin, "POST", "/billing/fee-schedule/import/"+step, header+"99457,,2026-01-01,,51.77,CMS,final\n99457,,2025-01-01,,48,CMS,final\n99457,,2025-06-01,,49,CMS,final\n",
			"Content-Type", "text/csv").want(200).wantAt(object{"rows": 3.0, "created": 2.0, "replaced": 0.0, "unchanged": 1.0})
	}
}

// The next year, and the first of November on which its final fees are published, begin by the practice's day.
func TestFeeYearIsThePractices(t *testing.T) {
	c := newClinic(t) // in New York
	header := "cpt_code,locality,effective_date,charge,expected,source,status\n"
	for _, step := range []struct{ now, row, field string }{
		{"2026-11-01T03:59:59Z", "99457,,2027-01-01,,53,CMS,final", "row 2.status"},
		{"2026-11-01T04:00:00Z", "99457,,2027-01-01,,53,CMS,final", ""},
		{"2027-01-01T04:59:59Z", "99457,,2028-01-01,80,,Practice,final", "row 2.effective_date"},
		{"2027-01-01T05:00:00Z", "99457,,2028-01-01,80,,Practice,final", ""},
	} {
		now, err := time.Parse(time.RFC3339, step.now)
		if err != nil {
			t.Fatal(err)
		}
		c.now = now
		for _, query := range []string{"?preview=true", ""} {
			answer := c.request(authz.Admin, "POST", "/billing/fee-schedule/import/"+query, header+step.row+"\n", "Content-Type", "text/csv")
			if step.field != "" {
				answer.wantFields(step.field)
			} else {
				answer.want(200)
			}
		}
	}
}

func hasRow(rows []object, want object) bool {
	for _, row := range rows {
		same := true
		for name, value := range want {
			same = same && row[name] == value
		}
		if same {
			return true
		}
	}
	return false
}
