package icd10

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// ReleaseYear is the fiscal year of the embedded set.
const ReleaseYear = 2026

// Standing is what the list of a day's fiscal year states about a code.
type Standing int

// The standings. A code is NotCovered if the day's list is missing and no other list has the code.
const (
	Billable Standing = iota
	Heading
	Unknown
	NotCovered
)

// Lists are the code lists of this service: the embedded one, and those that the practice has imported by fiscal year. Source:
// docs/decisions/billing.md, "ICD-10".
type Lists struct {
	set      *Set
	imported []int             // fiscal years
	rows     map[string]string // years of the codes that were requested, as stored; "" for codes of no year
}

// LoadLists loads what the lists have about some codes.
func LoadLists(app core.App, codes []string) (*Lists, error) {
	l := &Lists{}
	var err error
	if l.set, err = All(); err != nil {
		return nil, err
	}
	if l.imported, err = collections.ICD10ListYears(app); err != nil {
		return nil, err
	}
	l.rows, err = collections.ICD10Years(app, codes)
	return l, err
}

// Covers reports whether the list of a day's fiscal year is there.
func (l *Lists) Covers(day string) bool {
	year := FiscalYear(day)
	return year == ReleaseYear || slices.Contains(l.imported, year)
}

// StandingOf returns what the lists state about a code on a day, YYYY-MM-DD.
func (l *Lists) StandingOf(code, day string) Standing {
	entry, found := l.set.Find(code)
	found = found && entry.Code == code
	years, isStored := l.rows[code]
	isHeading, ofNoYear := found && !entry.Billable, isStored && years == "" && !found
	year := FiscalYear(day)
	switch {
	case collections.HasICD10Year(years, year), year == ReleaseYear && (found && !isHeading || ofNoYear):
		return Billable
	case !l.Covers(day) && (found && !isHeading || ofNoYear || years != ""):
		return Billable
	case isHeading:
		return Heading
	case l.Covers(day):
		return Unknown
	}
	return NotCovered
}

// FiscalYear returns the fiscal year of a day, YYYY-MM-DD: it begins on October 1 of the year before. Source: 45 CFR 162.1002(c); ICD-10-CM Official
// Guidelines ("October 1 to September 30").
func FiscalYear(day string) int {
	year, err := strconv.Atoi(day[:min(4, len(day))])
	if err == nil && day[4:] >= "-10-01" {
		year++
	}
	return year
}

// IsExternalCause reports whether a code is of chapter 20, which never states the principal diagnosis. Source: ICD-10-CM Official Guidelines, I.C.20.a.6.
func IsExternalCause(code string) bool { return code != "" && strings.Contains("VWXY", code[:1]) }

// MissingList returns the name of the list of a day's fiscal year if it is missing; "" if it is there.
func MissingList(app core.App, day string) (string, error) {
	years, err := collections.ICD10ListYears(app)
	if err != nil || (&Lists{imported: years}).Covers(day) {
		return "", err
	}
	return fmt.Sprintf("ICD-10-CM FY %d", FiscalYear(day)), nil
}
