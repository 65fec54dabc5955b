package billing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// firstFeeYear is the first year of which a list is accepted: Medicare pays a code of remote monitoring, 99091, from 2018 on. Source: CMS, CY 2018
// physician fee schedule final rule (secondary).
const firstFeeYear = 2018

// readFees parses a fee list and rejects what must not be stored. It also returns the stored fees. now is in the practice's zone: its day decides which
// year is the next.
func readFees(app core.App, file []byte, now time.Time) (fees, stored []collections.Fee, err error) {
	if fees, err = ParseFees(file); err != nil {
		return nil, nil, err
	}
	if stored, err = collections.ListFees(app); err != nil {
		return nil, nil, err
	}
	return fees, stored, cmp.Or(rejectWrongYears(fees, now), rejectProposed(fees, now), rejectProposedInPlaceOfFinal(fees, stored))
}

// rejectWrongYears rejects rows of a year in which no remote monitoring was paid, and beyond next year, for which nothing is published.
func rejectWrongYears(fees []collections.Fee, now time.Time) error {
	wrong, last := fault.Fields{}, now.Year()+1
	for i, fee := range fees {
		if year := ParseDay(fee.EffectiveDate).Year(); year < firstFeeYear || year > last {
			wrong.Add(fmt.Sprintf("row %d.effective_date", i+2), fmt.Sprintf("Must be a day of the years %d to %d.", firstFeeYear, last))
		}
	}
	return wrong.Err()
}

// rejectProposedInPlaceOfFinal rejects proposed rows that would replace final ones.
func rejectProposedInPlaceOfFinal(fees, stored []collections.Fee) error {
	wrong, finals := fault.Fields{}, map[string]bool{}
	for _, s := range stored {
		if s.Status == collections.FeeFinal {
			finals[feeKey(s)] = true
		}
	}
	for i, fee := range fees {
		if fee.Status == collections.FeeProposed && finals[feeKey(fee)] {
			wrong.Add(fmt.Sprintf("row %d.status", i+2), "The final fee of this code, locality and date is stored: a proposed one cannot replace it.")
		}
	}
	return wrong.Err()
}

// feeKey identifies a fee within the schedule.
func feeKey(fee collections.Fee) string {
	return fee.CPTCode + " " + fee.EffectiveDate + " " + fee.Locality
}

// proposedFactors are the conversion factors of proposed rules by year, in ten-thousandths of a dollar, outside alternative payment models and within.
// Source: CMS, CY 2027 physician fee schedule proposed rule (secondary).
var proposedFactors = map[string][]int64{"2027": {328409, 331693}}

// shippedFactor is the conversion factor of the shipped list of 2026. Source: CMS, CY 2026 final rule (secondary).
const (
	shippedYear   = "2026"
	shippedFactor = 334009
)

// rejectProposed rejects final rows with expected amounts that are not: of a year without a published final rule, or made from a proposed rule, as the
// source states or the amounts show. Charges are the practice's own. Source: docs/decisions/billing.md, "Fee schedule".
func rejectProposed(fees []collections.Fee, now time.Time) error {
	wrong := fault.Fields{}
	for i, fee := range fees {
		if fee.Status != collections.FeeFinal || fee.ExpectedCents == nil {
			continue
		}
		year, column := fee.EffectiveDate[:4], fmt.Sprintf("row %d.status", i+2)
		published := ParseDay(year+"-11-01").AddDate(-1, 0, 0).Format(time.DateOnly)
		switch {
		case now.Format(time.DateOnly) < published:
			wrong.Add(column, "CMS publishes the final fees of "+year+" by "+published+": give the status proposed.")
		case namesProposal(fee) || slices.ContainsFunc(proposedFactors[year], func(factor int64) bool { return usesConversionFactor(fees, year, factor) }):
			wrong.Add(column, "The amount is from the proposed rule of "+year+": give the status proposed.")
		}
	}
	return wrong.Err()
}

// namesProposal reports whether the source of a fee states that it is from a proposed rule.
func namesProposal(fee collections.Fee) bool {
	words := []string{"proposed", "nprm"}
	for _, factor := range proposedFactors[fee.EffectiveDate[:4]] {
		words = append(words, fmt.Sprintf("%d.%04d", factor/10_000, factor%10_000))
	}
	source := strings.ToLower(fee.Source)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(source, word) })
}

// usesConversionFactor reports whether the national amounts of a year are the shipped relative values times a conversion factor.
func usesConversionFactor(fees []collections.Fee, year string, factor int64) bool {
	file, _ := BundledFees(shippedYear)
	shipped, _ := ParseFees(file) // a test parses it
	made := 0
	for _, fee := range fees {
		at := slices.IndexFunc(shipped, func(s collections.Fee) bool { return s.CPTCode == fee.CPTCode })
		if at < 0 || fee.EffectiveDate[:4] != year || fee.Locality != "" || fee.ExpectedCents == nil {
			continue
		}
		units := (*shipped[at].ExpectedCents*10_000 + shippedFactor/2) / shippedFactor // hundredths of a relative value unit
		if off := *fee.ExpectedCents - (units*factor+5_000)/10_000; off < -1 || off > 1 {
			return false
		}
		made++
	}
	return made > 0
}
