package billing

import (
	"cmp"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// RevenueEstimate is what it would bring to reach a code that is near, and what beside days or minutes stands against it.
// Source: docs/decisions/billing.md, "Near-billable list".
type RevenueEstimate struct {
	Expected Cents `json:"expected"` // of the code
	// Gain is how much more that is than what the period has come to already; PerUnit is Gain by each day or minute that is still missing.
	Gain    Cents `json:"gain"`
	PerUnit Cents `json:"gain_per_unit"`
	// Until is the last day on which there is still time for all that is missing: of days, of which each takes one, the last to begin on.
	Until   string   `json:"until"`
	Missing []string `json:"against"` // not_active, missing_consent, missing_diagnosis
}

// EstimateRevenue is what those of [Engine.NearBillable] are worth.
func (e *Engine) EstimateRevenue(app core.App, list []NearCode, today string) (worth map[string]RevenueEstimate, err error) {
	tariff, err := e.loadTariff(app)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, n := range list {
		ids[i] = n.PatientID
	}
	slices.Sort(ids)
	worth = map[string]RevenueEstimate{}
	for some := range slices.Chunk(slices.Compact(ids), chunkSize) {
		patients, err := e.loadFacts(app, some, today)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if f := patients[n.PatientID]; f != nil {
				worth[n.key()] = e.estimateRevenue(tariff, f, n, today)
			}
		}
	}
	return worth, nil
}

// key tells one nearness from another.
func (n NearCode) key() string { return n.PatientID + n.CPTCode + n.PeriodStart }

// EstimateIn finds what a nearness is worth.
func (n NearCode) EstimateIn(of map[string]RevenueEstimate) RevenueEstimate { return of[n.key()] }

func (e *Engine) estimateRevenue(t tariff, f *patientFacts, n NearCode, today string) RevenueEstimate {
	w := RevenueEstimate{Expected: t.expectedRate(f.payer, n.CPTCode, n.PeriodEnd), Until: n.PeriodEnd, Missing: append([]string{}, e.missingItems(f, today)...)}
	w.Gain = w.Expected
	if n.Reached != nil && baseRule(n.CPTCode).Instead == *n.Reached { // it takes the other's place
		w.Gain -= t.expectedRate(f.payer, *n.Reached, n.PeriodEnd)
	}
	if missing := n.Missing(); missing > 0 {
		w.PerUnit = w.Gain / Cents(missing)
		if n.Unit == "days" {
			w.Until = AddDays(n.PeriodEnd, 1-missing)
		}
	}
	return w
}

// ByEstimatedGain orders by what each day or minute of work brings; what nothing else stands against comes first, and of equals what has less time left.
func ByEstimatedGain(of map[string]RevenueEstimate) func(a, b NearCode) int {
	return func(a, b NearCode) int {
		x, y := a.EstimateIn(of), b.EstimateIn(of)
		return cmp.Or(cmp.Compare(min(len(x.Missing), 1), min(len(y.Missing), 1)), cmp.Compare(y.PerUnit, x.PerUnit), cmp.Compare(x.Until, y.Until), byMissing(a, b))
	}
}
