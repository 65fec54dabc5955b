package billing

import (
	"cmp"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// RevenueEstimate is the expected revenue of reaching a near code, and what else blocks it. Source: docs/decisions/billing.md, "Near-billable list".
type RevenueEstimate struct {
	Expected Cents `json:"expected"` // of the code
	// Gain is the difference from what the period supports now; PerUnit is Gain per missing day or minute.
	Gain    Cents `json:"gain"`
	PerUnit Cents `json:"gain_per_unit"`
	// Until is the last day on which the code can still be reached; for days, since each takes one, the last day to begin.
	Until   string   `json:"until"`
	Missing []string `json:"against"` // not_active, missing_consent, missing_diagnosis
}

// EstimateRevenue returns the estimates for the results of [Engine.NearBillable].
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

// key identifies the code, patient and period.
func (n NearCode) key() string { return n.PatientID + n.CPTCode + n.PeriodStart }

// EstimateIn returns its estimate.
func (n NearCode) EstimateIn(of map[string]RevenueEstimate) RevenueEstimate { return of[n.key()] }

func (e *Engine) estimateRevenue(t tariff, f *patientFacts, n NearCode, today string) RevenueEstimate {
	w := RevenueEstimate{Expected: t.expectedRate(f.payer, n.CPTCode, n.PeriodEnd), Until: n.PeriodEnd, Missing: append([]string{}, e.missingItems(f, today)...)}
	w.Gain = w.Expected
	if n.Reached != nil && baseRule(n.CPTCode).Instead == *n.Reached { // it replaces that code
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

// ByEstimatedGain orders by gain per day or minute of work; unblocked ones come first, and equal ones by the earlier deadline.
func ByEstimatedGain(of map[string]RevenueEstimate) func(a, b NearCode) int {
	return func(a, b NearCode) int {
		x, y := a.EstimateIn(of), b.EstimateIn(of)
		return cmp.Or(cmp.Compare(min(len(x.Missing), 1), min(len(y.Missing), 1)), cmp.Compare(y.PerUnit, x.PerUnit), cmp.Compare(x.Until, y.Until), byMissing(a, b))
	}
}
