package billing

import (
	"math"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// priceList holds the payers' names and rates and the fee schedule, read once for a run.
type priceList struct {
	names    map[int64]string
	rates    map[payerCode][]collections.PayerRate // latest first
	fees     map[string][]collections.Fee          // by code, latest first within each locality
	locality string                                // of the practice
}

type payerCode struct {
	payer int64
	code  string
}

func (e *Engine) loadPriceList(app core.App) (t priceList, err error) {
	payers, err := collections.ListPayers(app)
	if err != nil {
		return t, err
	}
	rates, err := collections.ListPayerRates(app)
	if err != nil {
		return t, err
	}
	fees, err := collections.ListFees(app)
	if err != nil {
		return t, err
	}
	t = priceList{map[int64]string{}, map[payerCode][]collections.PayerRate{}, map[string][]collections.Fee{}, e.Locality}
	for _, f := range fees {
		if f.Status != collections.FeeProposed {
			t.fees[f.CPTCode] = append(t.fees[f.CPTCode], f)
		}
	}
	for _, p := range payers {
		t.names[p.Number()] = p.Name
	}
	for _, r := range rates {
		key := payerCode{collections.Number(r.PayerID), r.CPTCode}
		t.rates[key] = append(t.rates[key], r)
	}
	return t, nil
}

// expectedRate returns the amount expected from a payer for a code on a day: the payer's latest rate in force, else the fee schedule's expected
// amount, else the default rate. Source: docs/decisions/billing.md, "Amounts".
func (t priceList) expectedRate(payer int64, code, day string) Cents {
	for _, r := range t.rates[payerCode{payer, code}] {
		if r.EffectiveDate <= day {
			return Cents(r.RateCents)
		}
	}
	if cents, said := t.scheduledFee(code, day, importedExpected); said {
		return cents
	}
	return baseRule(code, day).Rate
}

// payerOf returns the record id and name of a patient's payer.
func (t priceList) payerOf(number int64) (id, name string) {
	if name, known := t.names[number]; known {
		return collections.NumberID(number), name
	}
	return "", "Self-pay"
}

// scheduledFee returns an amount of the fee schedule for a code on a day: the practice's locality first, then national; the latest date that has
// it.
func (t priceList) scheduledFee(code, day string, figure func(collections.Fee) *int64) (cents Cents, said bool) {
	for _, locality := range slices.Compact([]string{t.locality, ""}) {
		for _, fee := range t.fees[code] {
			if fee.Locality == locality && fee.EffectiveDate <= day && figure(fee) != nil {
				return Cents(*figure(fee)), true
			}
		}
	}
	return 0, false
}

// importedExpected returns the expected amount of a fee that the practice has imported; nil for the list with which it started.
func importedExpected(f collections.Fee) *int64 {
	if f.Shipped {
		return nil
	}
	return f.ExpectedCents
}

// charge returns the charge for a unit: the practice's charge, else the expected rate, and at least the national amount, because a payer pays no
// more than the charge. Source: docs/decisions/billing.md, "Fee schedule".
func (t priceList) charge(payer int64, code, day string) Cents {
	if cents, said := t.scheduledFee(code, day, func(f collections.Fee) *int64 { return f.ChargeCents }); said {
		return cents
	}
	national, _ := t.scheduledFee(code, day, func(f collections.Fee) *int64 {
		if !f.Shipped {
			return nil
		}
		return f.ExpectedCents
	})
	return max(t.expectedRate(payer, code, day), national)
}

// takePayer gives the patient's payer to the entries that were made before one was on record and wait for review. Reviewed ones keep what a person approved.
// Source: docs/decisions/billing.md, "Amounts".
func (e *Engine) takePayer(tx core.App, patientID string, now time.Time) error {
	waiting, err := collections.EntriesWithoutPayer(tx, patientID, PendingReview)
	if err != nil {
		return err
	}
	for _, entry := range waiting {
		before := amountsOf(entry)
		if err := e.adoptPayer(tx, entry); err != nil || entry.PayerID() == "" {
			return err
		}
		m := Transition{event: audit.BillingUpdate, detail: "payer " + entry.PayerName()}
		err := m.store(tx, entry, PendingReview, PendingReview, before, audit.System(), now, func(a audit.Entry, now time.Time) error { return audit.Append(tx, a, now) })
		if err != nil {
			return err
		}
	}
	return nil
}

// adoptPayer gives an entry without a payer the patient's, with its rates.
func (e *Engine) adoptPayer(tx core.App, entry *collections.BillingEntry) error {
	patient, err := collections.FindPatientAnyState(tx, entry.PatientID())
	if err != nil || entry.PayerID() != "" || patient.InsurancePayerID() == 0 {
		return err
	}
	t, err := e.loadPriceList(tx)
	if err != nil {
		return err
	}
	number, code, day, units := patient.InsurancePayerID(), entry.CPTCode(), entry.ServiceDate(), int64(entry.Units())
	id, name := t.payerOf(number)
	entry.SetPayer(id, name, int64(t.expectedRate(number, code, day))*units, int64(t.charge(number, code, day))*units)
	return nil
}

// CheckRate returns the problem with a payer rate written outside the API, "" for none: cents are whole and within the bounds of [CentsOf], the
// day is YYYY-MM-DD.
func CheckRate(code string, cents float64, day string) string {
	if !inCatalog(code) {
		return "The CPT code is not in the catalog."
	}
	if _, ok := CentsOf(cents / 100); !ok || cents != math.Trunc(cents) {
		return "A rate is 0 to 100000000 whole cents."
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return "The effective date must be YYYY-MM-DD."
	}
	return ""
}
