package icd10_test

import (
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/icd10"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A code is judged by the list of the date of service: the embedded one of fiscal year 2026, an imported one of another year, and without one by all.
func TestStandingByYear(t *testing.T) {
	app := vigiltest.NewApp(t)
	codes := []string{"I10", "E11", "N18.3", "E88.81", "Z99.99", "I1A.9", "V00.01XA"}
	store := func(year int, list ...string) {
		t.Helper()
		var rows []collections.ICD10Code
		for _, code := range list {
			rows = append(rows, collections.ICD10Code{Code: code, Description: "New", Category: "New"})
		}
		if err := collections.StoreICD10(app, rows); err != nil {
			t.Fatal(err)
		}
		if year > 0 {
			if err := collections.MarkICD10List(app, list, year); err != nil {
				t.Fatal(err)
			}
		}
	}
	const b, h, u, n = icd10.Billable, icd10.Heading, icd10.Unknown, icd10.NotCovered
	want := func(what, day string, missing string, standings ...icd10.Standing) {
		t.Helper()
		lists, err := icd10.LoadLists(app, codes)
		if err != nil {
			t.Fatal(err)
		}
		for i, code := range codes {
			if got := lists.StandingOf(code, day); got != standings[i] {
				t.Errorf("%s: %s is %d on %s, want %d", what, code, got, day, standings[i])
			}
		}
		if got, err := icd10.MissingList(app, day); err != nil || got != missing {
			t.Errorf("%s: %q is missing on %s, want %q, %v", what, got, day, missing, err)
		}
	}
	want("first day", "2025-10-01", "", b, h, h, h, u, u, b)
	want("last day", "2026-09-30", "", b, h, h, h, u, u, b)
	want("next year", "2026-10-01", "ICD-10-CM FY 2027", b, h, h, h, n, n, b)
	want("before", "2025-09-30", "ICD-10-CM FY 2025", b, h, h, h, n, n, b)
	store(2027, "I10", "I1A.9", "V00.01XA")
	want("imported", "2026-10-01", "", b, h, h, h, u, b, b)
	want("not in the year before", "2026-09-30", "", b, h, h, h, u, u, b)
	want("the year after", "2027-10-01", "ICD-10-CM FY 2028", b, h, h, h, n, b, b)
	store(2027, "I10", "E11")
	want("imported again", "2027-01-01", "", b, b, h, h, u, u, u)
	store(0, "Z99.99")
	want("a code of no year", "2026-09-30", "", b, h, h, h, b, u, b)
}

// Chapter 20 states why something happened, not what.
func TestExternalCause(t *testing.T) {
	for code, want := range map[string]bool{"V00.01XA": true, "W19.XXXA": true, "X58": true, "Y99.9": true, "Z99.89": false, "U07.1": false, "I10": false, "": false} {
		if icd10.IsExternalCause(code) != want {
			t.Errorf("%s is external: %v", code, !want)
		}
	}
}
